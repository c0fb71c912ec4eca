"""The script of an experiment, and where in it something happened."""

import sys
from pathlib import Path

#: The name that the cells of a notebook have in an archive.
SESSION = "session.py"


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


def source_of(job_class: type, script: Path | None) -> tuple[str, bytes] | None:
    """Name and content of what defines an experiment; None where nobody knows, and for those of Lepaute itself.

    That is the script which was run, the script that a class by hand is defined in, or the cells that IPython and
    notebooks have executed so far.
    """
    if script is not None:
        return script.name, script.read_bytes()
    module = sys.modules.get(job_class.__module__)
    of_lepaute = job_class.__module__.partition(".")[0] == "lepaute"
    cells = getattr(sys.modules.get("__main__"), "In", None)  # as IPython calls them
    if isinstance(cells, list) and (of_lepaute or job_class.__module__ == "__main__"):
        return SESSION, "\n\n# %%\n".join(cell.rstrip() for cell in cells if cell.strip()).encode() + b"\n"
    file = getattr(module, "__file__", None)
    if of_lepaute or file is None or not Path(file).is_file():
        return None
    return Path(file).name, Path(file).read_bytes()
