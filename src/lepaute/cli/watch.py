"""`lepaute watch ...`: has a machine changed, since when, who else, and what does it cost."""

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lepaute.cli.options import App, AsJson, Force, option
from lepaute.cli.terminal import json_text, note, say
from lepaute.cli.watch_cost import cost
from lepaute.cli.watch_events import app as events
from lepaute.cli.watch_nodes import health, run
from lepaute.cli.watch_store import Place, ingest, opened
from lepaute.cli.watch_tests import replay, run_tests
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.files import not_written
from lepaute.kit.outputs import check_outputs
from lepaute.kit.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lepaute.watch.alerts import Announcement
    from lepaute.watch.report.summary import Regression

#: Of the environment: URLs with passwords, which a command line would show to everybody on the machine.
VARIABLE = "LEPAUTE_NOTIFY"


def site(
    output: Annotated[Path, option("an older site there is replaced", "--output", "-o", metavar="FOLDER")] = Path(
        "watch-site"
    ),
    store: Place = None,
    as_json: AsJson = False,
) -> None:
    """Writes a folder of pages: all factors, nodes and events, with plots; open its index.html in a browser.

    The pages show what `lepaute watch test` says of all jobs; nothing is recorded.
    """
    from lepaute.watch.site.write import write_site

    with opened(store) as watch:
        made = write_site(watch.store, output, time.time())
    if as_json:
        print(json_text({**asdict(made), "folder": str(made.folder)}))
    else:
        say(f"{made.folder / 'index.html'}: {made.pages} pages, {made.total_bytes / 1e6:.1f} MB")


def alert(
    store: Place = None,
    notify: Annotated[
        list[str] | None,
        option(
            "send new regressions there: an Apprise URL such as mailto://... or jsons://host/hook; "
            f"${VARIABLE} has several, with spaces between",
            metavar="URL",
        ),
    ] = None,
    prometheus: Annotated[Path | None, option("the state, for the textfile collector", metavar="FILE.prom")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> int:
    """Sends one message for each new regression, and writes a file for Prometheus.

    The regressions are those of `lepaute watch test`, and nothing but messages is recorded. One is announced once on
    each channel, however many nodes it has, and again when it has spread to twice as many.
    """
    from lepaute.watch.alerts import announce, channels_of, is_state, write_prometheus
    from lepaute.watch.open_regressions import open_regressions

    urls = list(notify) if notify is not None else os.environ.get(VARIABLE, "").split()
    if not urls and prometheus is None:
        raise InputError(f"there is nothing to do; give --notify URL, {VARIABLE}, or --prometheus FILE")
    # Whoever watches calls this every day: a state of yesterday is there to be replaced.
    check_outputs({"--prometheus": prometheus}, force=force or (prometheus is not None and is_state(prometheus)))
    channels = channels_of(urls)
    with opened(store) as watch:
        regressions = open_regressions(watch.store)
        if prometheus is not None:
            try:
                write_prometheus(regressions, prometheus, time.time())
            except OSError as error:
                raise EnvironmentProblem(not_written(prometheus, error)) from None
        reports, unseen = regressions.reports, regressions.unseen()
        messages = [message for channel in channels for message in announce(watch.store, channel, reports)]
    if as_json:
        plain = [
            {"channel": message.channel, "title": message.title, "body": message.body, "sent": not message.problem}
            for message in messages
        ]
        unknown = sorted(notice.cluster for notice in unseen if notice.is_unknown)
        print(json_text({"open_regressions": len(reports), "unknown": unknown, "messages": plain}))
    else:
        text = "".join(f"; unknown: {notice.reason[0]}" for notice in unseen if notice.is_unknown)
        say(f"{_alert_answer(prometheus, reports, len(channels), messages)}{text}")
        for message in messages:
            if not message.problem:
                say(f"sent to {message.channel}: {message.title}")
    problems = [message.problem for message in messages if message.problem]
    for problem in problems:
        note(f"lepaute: {problem}")
    return 2 if problems else 0


def _alert_answer(
    written: Path | None, reports: "Sequence[Regression]", channels: int, messages: "Sequence[Announcement]"
) -> str:
    """The file, what is open on which nodes, and what there was to tell the channels."""
    from lepaute.watch.report.summary import regression_nodes

    file = f"{written} written; " if written is not None else ""
    nodes = ", ".join(dict.fromkeys(regression_nodes(report) for report in reports))
    failed = sum(bool(message.problem) for message in messages)
    sent = ""
    if messages:
        sent = f"; {counted(len(messages) - failed, 'message')} sent{f', {failed} failed' if failed else ''}"
    elif channels:
        sent = f"; {'already reported: ' if reports else ''}no message sent"
    return f"{file}{counted(len(reports), 'open regression')}{nodes and f' ({nodes})'}{sent}"


app = App(help="Has a machine changed, since when, which others, and what does it cost?")
app.command()(run)
app.command()(ingest)
app.command("test")(run_tests)
app.add_typer(events, name="events")
app.command()(replay)
app.command()(cost)
app.command()(site)
app.command()(alert)
app.command()(health)
