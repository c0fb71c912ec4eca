"""`lepaute watch alert`: open regressions as messages, and as a file for Prometheus."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lepaute.cli.output_options import Force
from lepaute.cli.watch_store import AsJson, Place, opened
from lepaute.kit.files import not_written

if TYPE_CHECKING:
    from lepaute.watch.alerts import Announced

#: Of the environment: URLs with passwords, which a command line would show to everybody on the machine.
VARIABLE = "LEPAUTE_NOTIFY"


def alert(
    store: Place = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            "--notify",
            metavar="URL",
            help="send new regressions there: an Apprise URL such as mailto://... or jsons://host/hook; "
            f"${VARIABLE} has several, with spaces between",
        ),
    ] = None,
    prometheus: Annotated[
        Path | None,
        typer.Option("--prometheus", metavar="FILE.prom", help="write the state for the textfile collector"),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> int:
    """Sends one message for each new regression, and writes a file for Prometheus.

    The regressions are those of `lepaute watch test`, and nothing but messages is recorded. One is announced once on
    each channel, however many nodes it has, and again when it has spread to twice as many.
    """
    import time

    from lepaute.errors import EnvironmentProblem, InputError
    from lepaute.kit.outputs import check_outputs
    from lepaute.kit.text import counted
    from lepaute.watch.alerts import announce, channels_of, is_state, write_prometheus
    from lepaute.watch.open_regressions import open_regressions

    urls = list(notify) if notify is not None else os.environ.get(VARIABLE, "").split()
    if not urls and prometheus is None:
        raise InputError(f"there is nothing to do; give --notify URL, {VARIABLE}, or --prometheus FILE")
    # Whoever watches calls this every day: a state of yesterday is there to be replaced.
    check_outputs({"--prometheus": prometheus}, force=force or (prometheus is not None and is_state(prometheus)))
    channels = channels_of(urls)
    with opened(store) as watch:
        found = open_regressions(watch.store)
        if prometheus is not None:
            try:
                write_prometheus(found, prometheus, time.time())
            except OSError as error:
                raise EnvironmentProblem(not_written(prometheus, error)) from None
        sent = [each for channel in channels for each in announce(watch.store, channel, found.reports)]
    if as_json:
        print(
            json.dumps({"open_regressions": len(found.reports), "messages": [_plain(each) for each in sent]}, indent=2)
        )
    else:
        for each in sent:
            if not each.problem:
                print(f"sent to {each.channel}: {each.title}")
        print(f"{counted(len(found.reports), 'open regression')}, {counted(len(sent), 'new message')}")
    for each in sent:
        if each.problem:
            print(f"lepaute: {each.problem}", file=sys.stderr)
    return 2 if any(each.problem for each in sent) else 0


def _plain(each: "Announced") -> dict[str, object]:
    return {"channel": each.channel, "title": each.title, "body": each.body, "sent": not each.problem}
