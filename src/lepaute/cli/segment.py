"""`lepaute segment FILE`: the sizes at which timings change slope or jump, from OSU or Intel MPI benchmarks or CSV."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lepaute.cli.options import AsJson, Details, Force, argument, option, page_option
from lepaute.cli.terminal import answer_text, details_text, json_text, note, warn
from lepaute.errors import InputError
from lepaute.kit.files import write_atomic
from lepaute.kit.outputs import check_outputs
from lepaute.kit.picture import files_of, picture_files
from lepaute.kit.printable import terminal_columns
from lepaute.kit.report.page import check_page_name
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted

if TYPE_CHECKING:
    from lepaute.measure.fit.duration_tables import DurationTable
    from lepaute.measure.fit.segmentation import SegmentedLine

#: Through two sizes a line goes whatever they are.
MIN_SIZES = 3


def command(
    file: Annotated[Path, argument("FILE", "output of an OSU or Intel MPI benchmark, or CSV")],
    unit: Annotated[str, option("if the file tells none: s, ms, us, ns, MB/s, Gb/s", metavar="UNIT")] = "",
    x: Annotated[str, option("of CSV: the column of sizes", metavar="COLUMN")] = "",
    y: Annotated[str, option("the column of durations, or of rates", metavar="COLUMN")] = "",
    where: Annotated[list[str] | None, option("of CSV: only these rows; repeatable", metavar="COLUMN=VALUE")] = None,
    table: Annotated[str, option("of several tables those whose name contains this", metavar="NAME")] = "",
    breakpoints: Annotated[int | None, option("default: as many as the data prove", metavar="N")] = None,
    objective: Annotated[str, option("log: relative, no negative terms; weighted, ordinary", metavar="WHICH")] = "log",
    plot: Annotated[Path | None, option("picture of points and lines, .png or .svg", metavar="FILE")] = None,
    report: Annotated[Path | None, page_option("page: where, how sure, what each line is")] = None,
    details: Details = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Find the sizes at which timings change slope or jump (protocols of an MPI library, caches), and each line.

    FILE is the output of an OSU or Intel MPI benchmark, or CSV. Also says what could not be decided for lack of sizes.
    """
    from lepaute.measure.fit import segment
    from lepaute.measure.fit.duration_tables import place_of, read_durations
    from lepaute.measure.fit.segment_report import axis_labels, page

    check_outputs({"--plot": files_of(plot), "--report": report}, inputs=[file], force=force)
    check_page_name(report)
    tables = read_durations(file, x=x or None, y=y or None, unit=unit or None, only=_conditions(where or ()))
    chosen = [part for part in tables if table.lower() in part.name.lower()]
    if not chosen:
        raise InputError(f"{file}: no table is named {table!r:.60}; there are {_names(tables)}")
    few = [part for part in chosen if part.sizes < MIN_SIZES]
    omitted = [
        f"{place_of(part.name, str(file))}: {counted(part.sizes, 'size')}; give {MIN_SIZES} or more" for part in few
    ]
    if not (chosen := [part for part in chosen if part.sizes >= MIN_SIZES]):
        raise InputError(omitted[0])
    warn(omitted)
    for name, path, what in (("--plot", plot, "draws"), ("--report", report, "is of")):
        if path is not None and len(chosen) > 1:
            raise InputError(f"{name} {what} one table; choose it with --table: {_names(chosen)}")
    options: Any = {"objective": objective, "n_breakpoints": breakpoints}
    lines = [segment(part.x, part.duration_s, **options) for part in chosen]
    ((durations, line), *_) = zip(chosen, lines, strict=True)
    if plot is not None:
        line.plot(plot, source=f"{file.name}, {durations.name}", **axis_labels(durations))
    if report is not None:
        settings = {"--unit": unit, "--x": x, "--y": y, "--table": table, "--breakpoints": breakpoints}
        words = [word for name, value in settings.items() if value not in ("", None) for word in (name, str(value))]
        words += [word for condition in where or () for word in ("--where", condition)]
        words += [] if objective == "log" else ["--objective", objective]
        again = shlex.join(["lepaute", "segment", str(file), *words, "--report", str(report)])
        write_atomic(report, page(durations, line, file.name, again))
    if as_json:
        objects = list(map(as_object, chosen, lines))
        answer = " ".join(part["answer"] for part in objects)
        print(json_text({"answer": answer, "file": str(file), "tables": objects, "omitted": omitted}))
    else:
        width = terminal_columns()
        print("\n\n".join(_text_of(*each, width, details=details) for each in zip(chosen, lines, strict=True)))
    for written in (picture_files(plot) if plot is not None else (), [report] if report is not None else ()):
        if written:
            note(f"wrote {' and '.join(map(str, written))}")


def _conditions(texts: Sequence[str]) -> dict[str, str]:
    if wrong := [text for text in texts if text.find("=") < 1]:
        raise InputError(f"--where is {wrong[0]!r:.60}; it is COLUMN=VALUE such as operation=send")
    return dict(text.split("=", 1) for text in texts)


def _names(tables: "Sequence[DurationTable]") -> str:
    return "; ".join(table.name for table in tables)


def _text_of(table: "DurationTable", line: "SegmentedLine", width: int, *, details: bool) -> str:
    """A sentence on the breakpoints, each of them, what there is, and the lines; with details what each one gains."""
    from lepaute.measure.fit.segment_report import lines_table, origin, sentence

    answer, head = sentence(table, line).removesuffix("."), origin(table)
    notes, jumps = [*table.notes, *line.notes], line.jumps(in_bytes=table.in_bytes)
    drop, note = () if details else (6, 4, 8), "95 % intervals: --details or a wider terminal"
    lines = shown_table(*lines_table(table, line), width, left=(), drop=drop, note=note)
    if not details:
        return f"{answer_text(answer, [*jumps, ('from', head)], notes, width)}\n{lines}"
    rest = [*(f"{place}: {how}" for place, how in jumps), head, *notes]
    text = details_text(answer, "\n".join(rest), width)
    return f"{text}\n{lines}\n\n{line.table()}"


def as_object(table: "DurationTable", line: "SegmentedLine") -> dict[str, Any]:
    """For JSON: sizes as in the file, durations in seconds; null for an end of an interval that is infinite."""
    from lepaute.measure.fit.segment_report import sentence

    breakpoints = zip(line.changes().items(), line.breakpoint_intervals, strict=True)
    return {
        "answer": sentence(table, line), "name": table.name, **line.decision.to_dict(),
        "size_column": table.x_name, "duration_column": table.y_name, "sizes": table.sizes, "durations": len(table.x),
        "objective": line.objective, "likeliest_breakpoint": _likeliest(line),
        "breakpoints": [
            {"size": place, "interval": list(interval), "change_over_scatter": ratio}
            for (place, ratio), interval in breakpoints
        ],
        "segments": [
            {
                "low": part.low, "high": part.high, "durations": part.n_points,
                "intercept_s": part.intercept, "intercept_interval_s": list(part.intercept_interval),
                "slope_s": part.slope, "slope_interval_s": list(part.slope_interval),
            }
            for part in line.segments
        ],
        "candidates": [{"breakpoints": list(fit.breakpoints), "residual": fit.residual} for fit in line.candidates],
        "gains": list(line.gains), "notes": [*table.notes, *line.notes],
    }  # fmt: skip


def _likeliest(line: "SegmentedLine") -> dict[str, Any] | None:
    """Where none was proven: what the best one would change."""
    from lepaute.measure.fit.segmentation.result import likeliest_breakpoint

    likeliest = None if line.breakpoints else likeliest_breakpoint(line)
    return None if likeliest is None else {**asdict(likeliest), "one_line_holds": likeliest.is_negligible}
