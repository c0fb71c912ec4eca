"""The script of an experiment, and where in it something happened."""

from pathlib import Path


def line_in(problem: BaseException, script: Path | None) -> str:
    """`:12`, the line of the script in which it happened, where it did."""
    place = ""
    trace = problem.__traceback__
    while trace is not None and script is not None:
        if Path(trace.tb_frame.f_code.co_filename).absolute() == script.absolute():
            place = f":{trace.tb_lineno}"
        trace = trace.tb_next
    if not place and isinstance(problem, SyntaxError) and problem.lineno is not None:
        place = f":{problem.lineno}"
    return place
