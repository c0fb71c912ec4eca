"""`lepaute trace analyze`: efficiencies, critical path, wait states and traffic of a trace."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.options import AsJson, Details, Force
from lepaute.cli.terminal import json_text, tell
from lepaute.kit.files import write_atomic
from lepaute.kit.outputs import check_outputs
from lepaute.kit.printable import terminal_columns
from lepaute.kit.report.page import check_page_name
from lepaute.simulate.analysis import analysis_of
from lepaute.simulate.analysis.page import page
from lepaute.simulate.analysis.report import analysis_dict, facts_of, tables_text
from lepaute.simulate.platform import load_platform
from lepaute.simulate.trace import read_trace


def analyze(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE", help="A recording, a simulation's trace, or another program's.", show_default=False
        ),
    ],
    platform: Annotated[
        str | None, typer.Option("--platform", "-p", help="Also the efficiencies of its replay on this platform.")
    ] = None,
    as_json: AsJson = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Also write a page with pictures and all tables.")
    ] = None,
    details: Details = False,
    force: Force = False,
) -> None:
    """Prints what a run lost, and to what: efficiencies, critical path, wait states, messages, imbalance.

    Efficiencies are those of POP: parallel = load balance x serialisation x transfer, by a replay on an ideal network.
    Wait states have Scalasca's names, with the rank that was waited for.
    """
    check_outputs({"--report": report}, inputs=[recording], force=force)
    check_page_name(report)
    on = None if platform is None else load_platform(platform)
    analysis = analysis_of(read_trace(recording), path=recording, platform=on)
    if report is not None:
        words = ["lepaute", "trace", "analyze", str(recording), *([] if platform is None else ["-p", platform])]
        write_atomic(report, page(analysis, shlex.join([*words, "--report", str(report)])))
    if as_json:
        print(json_text(analysis_dict(analysis)))
        return
    tell(analysis.sentence, facts_of(analysis), analysis.caveats, details=details)
    print(f"\n{tables_text(analysis, terminal_columns(), details=details)}")
