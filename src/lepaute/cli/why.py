"""`lepaute why RUN --usual FILE...`: why a recorded run took longer than usual."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lepaute.cli.entry import DONE, UNDECIDED
from lepaute.cli.options import AsJson, Details, Force, argument, option, page_option
from lepaute.cli.parsing import Command
from lepaute.cli.terminal import tell
from lepaute.kit.files import write_atomic
from lepaute.kit.later import later
from lepaute.kit.outputs import check_outputs
from lepaute.kit.report.page import check_page_name

if TYPE_CHECKING:
    from lepaute.study.slow_job import explaining
    from lepaute.study.slow_job import page as pages
else:
    explaining = later("lepaute.study.slow_job.explaining")
    pages = later("lepaute.study.slow_job.page")

#: By the state of the answer.
STATUS = {"nothing": DONE, "named": 1, "undecided": UNDECIDED}


class COMMAND(Command):
    """The command; --usual takes all words that follow, as shells write usual/*.parquet."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer's, the option written before each of its values."""
        end = args.index("--") if "--" in args else len(args)
        spread: list[str] = []
        flag = ""
        for word in args[:end]:
            if word.startswith("-"):
                flag = "--usual" if word == "--usual" else ""
            elif flag and spread[-1] != flag:
                spread.append(flag)
            spread.append(word)
        return super().parse_args(ctx, spread + args[end:])


def command(
    run: Annotated[Path, argument("RUN", "recording of the slow run")],
    usual: Annotated[list[Path], option("after RUN: usual runs, three or more", metavar="FILE...", show_default=False)],
    store: Annotated[
        str | None, option("of lepaute watch: what is known to be worse on the nodes of the run", metavar="PLACE")
    ] = None,
    report: Annotated[Path | None, page_option("page: causes, and where the runs part")] = None,
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> int:
    """Why a recorded run took longer than usual: what, where, since when, how much it adds, and what to do.

    RUN and the usual runs are of `lepaute record`, of the same program on as many ranks. Each part of the run that
    takes longer than chance explains is set back to what it usually takes, in replays. Exit status 0: nothing stands
    out; 1: a cause is named; 3: undecided.
    """
    check_outputs({"--report": report}, inputs=[run, *usual], force=force)
    check_page_name(report)
    answer, courses, pieces = explaining.explained(run, usual, store=store)
    if report is not None:
        words = [str(run), "--usual", *map(str, usual), *(["--store", store] if store else [])]
        again = shlex.join(["lepaute", "why", *words, "--report", str(report)])
        write_atomic(report, pages.page(answer, courses, pieces, again))
    document = answer.to_dict() if as_json else None
    tell(answer.answer, explaining.facts_of(answer, courses), answer.caveats, details=details, document=document)
    return STATUS[answer.state]
