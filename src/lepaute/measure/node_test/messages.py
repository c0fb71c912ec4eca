"""The messages of a node test: ping-pongs between two near cores of each node, and between neighbouring nodes."""

from collections.abc import Mapping, Sequence

from lepaute.design import Design, p2p_design
from lepaute.kit.mpi_launcher import MPIRUN_OF_NODES
from lepaute.measure.experiment.ranks import HOSTS, hosts_text, start_of_ranks
from lepaute.measure.layout import Layout
from lepaute.measure.nodes.channel import Channel
from lepaute.measure.nodes.group import Nodes
from lepaute.measure.probes import P2P_PROGRAM
from lepaute.measure.raw_output import header_of_raw, rows_of
from lepaute.measure.schedulers.types import RankLaunch

PINGPONGS, QUICK_PINGPONGS = 400, 60
MOST_BYTES = 8 << 20
LIMIT_S = 120.0


def pingpongs(seed: int, *, quick: bool) -> Design:
    """Messages of all sizes, there and back."""
    counts = {"pingpong": QUICK_PINGPONGS if quick else PINGPONGS}
    return p2p_design(seed, counts=counts, size_range_bytes=(1, MOST_BYTES))


def inside(node: Nodes, layout: Layout, design: Design, seed: int) -> list[dict[str, float | str]]:
    """Between the first two cores of one node; raises CommandFailed or NodeLost."""
    start = MPIRUN_OF_NODES.start(2, use_scheduler=False)
    node.write("p2p.csv", design.to_csv())
    threads = ",".join(str(core.pu) for core in layout.cores[:2])
    node.run(*start.argv, *_words(threads, seed), environment=start.environment, timeout_s=LIMIT_S)
    return _rows(node)


def between(
    pair: tuple[Nodes, Nodes], layouts: Mapping[str, Layout], launch: RankLaunch, design: Design, seed: int
) -> list[dict[str, float | str]]:
    """Between the first cores of two nodes; raises CommandFailed or NodeLost."""
    first, second = pair
    names = [first.names[0], second.names[0]]
    for node in pair:
        node.write("p2p.csv", design.to_csv())
    first.write(HOSTS, hosts_text(names, 1))
    one = first.channels[0]
    cores = [layouts[names[0]].cores[0], layouts[names[1]].cores[1 if _are_one_machine(pair) else 0]]
    words = _words(",".join(str(core.pu) for core in cores), seed, one)
    start = start_of_ranks(words, names, 1, None, launch, (), one.folder)
    first.run(*start.argv, environment=start.environment, timeout_s=LIMIT_S)
    return _rows(first)


def have_a_core_each(pair: tuple[Nodes, Nodes], layouts: Mapping[str, Layout]) -> bool:
    """Not where both are names of one machine that lends one core."""
    return not _are_one_machine(pair) or len(layouts[pair[1].names[0]].cores) > 1


def _are_one_machine(pair: tuple[Nodes, Nodes]) -> bool:
    one, other = (node.channels[0].hello.boot for node in pair)
    return one == other


def neighbours(names: Sequence[str]) -> list[tuple[str, str]]:
    """Each node with the next one in the order of the nodes, the last with the first: each node is in two pairs."""
    if len(names) < 2:
        return []
    pairs = list(zip(names, [*names[1:], names[0]], strict=True))
    return pairs[:1] if len(names) == 2 else pairs


def _words(cpus: str, seed: int, channel: Channel | None = None) -> list[str]:
    folder = "." if channel is None else channel.folder
    files = ["--design", f"{folder}/p2p.csv", "--out", f"{folder}/p2p.raw"]
    return [f"{folder}/{P2P_PROGRAM}", *files, "--seed", str(seed), "--cpus", cpus]


def _rows(node: Nodes) -> list[dict[str, float | str]]:
    """The columns of the table p2p: those of a calibration."""
    (content,) = node.read("p2p.raw.r0").values()
    text = content.decode()
    cost_s = float(header_of_raw(text).get("clock_cost_s", 0.0))
    return [
        {
            "operation": row["operation"],
            "size_bytes": int(row["size_bytes"]),
            "start_s": float(row["start_s"]),
            "duration_s": float(row["duration_s"]),
            "cpu": int(row["cpu"]),
            "clock_cost_s": cost_s,
        }
        for row in rows_of(text)
    ]
