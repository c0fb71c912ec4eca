"""Work on several nodes at once: machines side by side, the names of one machine one after the other."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial

from lepaute.measure.nodes.channel import NodeLost
from lepaute.measure.nodes.group import Nodes


def each_machine(nodes: Nodes, work: Callable[[Nodes, threading.Event], None]) -> None:
    """Does `work` on each node; a node that is lost meanwhile drops out, any other problem ends the work everywhere.

    work: gets the node, and an event that is set when it shall begin nothing more
    Raises the first problem, when nothing runs any more.
    """
    machines: dict[str, list[Nodes]] = {}
    for node in nodes:
        machines.setdefault(node.channels[0].hello.boot, []).append(node)

    def live(names: list[Nodes], stopping: threading.Event) -> None:
        for node in names:
            if stopping.is_set():
                return
            try:
                work(node, stopping)
            except NodeLost:
                if node.channels:
                    raise

    side_by_side([partial(live, names) for names in machines.values()], nodes)


def side_by_side(works: Sequence[Callable[[threading.Event], None]], nodes: Nodes) -> None:
    """Does all at the same time; a problem of one ends them everywhere.

    works: each gets an event that is set when it shall begin nothing more
    nodes: on which they start programs, which are ended then
    Raises the first problem, when nothing runs any more.
    """
    stopping = threading.Event()
    if len(works) < 2:  # here Ctrl-C ends the command that runs
        for work in works:
            work(stopping)
        return
    with ThreadPoolExecutor(len(works)) as workers:
        running = [workers.submit(work, stopping) for work in works]
        try:
            done, _ = wait(running, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            stopping.set()
            if nodes.channels:
                nodes.call("stop")
            raise
