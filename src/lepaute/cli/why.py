"""`lepaute why RUN --usual FILE...`: why a recorded run took longer than usual."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.entry import DONE, UNDECIDED
from lepaute.cli.options import AsJson, Details, Force
from lepaute.cli.terminal import tell
from lepaute.kit.files import write_atomic
from lepaute.kit.outputs import check_outputs
from lepaute.kit.report.page import check_page_name

#: By the state of the answer.
STATUS = {"nothing": DONE, "named": 1, "undecided": UNDECIDED}


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="recording of the slow run", show_default=False)],
    usual: Annotated[
        list[Path],
        typer.Option(metavar="FILE...", help="recordings of usual runs, at least three", show_default=False),
    ],
    store: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="of lepaute watch: what is known to be worse on the nodes of the run"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="page: causes, and where the runs part")
    ] = None,
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> int:
    """Why a recorded run took longer than usual: what, where, since when, how much it adds, and what to do.

    RUN and the usual runs are of `lepaute record`, of the same program on as many ranks. Each part of the run that
    takes longer than chance explains is set back to what it usually takes, in replays. Exit status 0: nothing stands
    out; 1: a cause is named; 3: undecided.
    """
    from lepaute.study.slow_job.explaining import explained, facts_of

    check_outputs({"--report": report}, inputs=[run, *usual], force=force)
    check_page_name(report)
    answer, courses, pieces = explained(run, usual, store=store)
    if report is not None:
        from lepaute.study.slow_job.page import page

        words = [str(run), "--usual", *map(str, usual), *(["--store", store] if store else [])]
        again = shlex.join(["lepaute", "why", *words, "--report", str(report)])
        write_atomic(report, page(answer, courses, pieces, again))
    document = answer.to_dict() if as_json else None
    tell(answer.answer, facts_of(answer, courses), answer.caveats, details=details, document=document)
    return STATUS[answer.state]
