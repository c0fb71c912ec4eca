"""The frame of every script: its options, table, picture, section of its page, and exit status.

A script ends with `run_study`; one that has other tables with `run_main`, whose function ends with `finish` or `close`.
"""

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pandas

from lepaute.errors import LepauteError
from support.evidence import cases, write_section
from support.goals import Goal, goals_table, status
from support.options import Options, options_of
from support.page import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run_study(
    name: str,
    rows: Callable[[Options], pandas.DataFrame],
    judged: Callable[[pandas.DataFrame], Sequence[Goal]],
    text: Callable[[pandas.DataFrame], str] | str,
    picture: "Callable[[pandas.DataFrame, Sequence[Goal]], tuple[Figure | None, str]] | None" = None,
    *,
    needs: Sequence[str] = (),
    own: Mapping[str, Mapping[str, Any]] | None = None,
    has_subset: bool = False,
    dtype: Any = None,
) -> NoReturn:
    """The whole of a script with one table: makes it, or reads it with --summarise; ends the program as `finish` says.

    rows : the table, a row a case;  judged : the goals of its docstring;  text : the section of its page
    picture : with what it shows, in a sentence;  dtype : of columns that a CSV file leaves open
    needs, own, has_subset : as for `options_of`
    """

    def main() -> int:
        options = options_of(sys.modules["__main__"].__doc__, needs, has_subset, own)
        frame = pandas.read_csv(options.table(name), dtype=dtype) if options.summarise else rows(options)
        goals = judged(frame)
        figure = picture(frame, goals) if picture is not None else ()
        return finish(options, name, frame, goals, text if isinstance(text, str) else text(frame), *figure)

    run_main(main)


def run_main(main: Callable[[], int]) -> NoReturn:
    """Ends the program with what its main function returns; 2, after a line of what is wrong, where it raises
    LepauteError."""
    try:
        sys.exit(main())
    except LepauteError as problem:
        print(f"{Path(sys.argv[0]).name}: {problem}", file=sys.stderr)
        sys.exit(2)


def say(*words: object, sep: str = " ") -> None:
    """Where a script is, as a line on standard error."""
    print(*words, sep=sep, file=sys.stderr, flush=True)


def finish(
    options: Options,
    study: str,
    frame: pandas.DataFrame,
    goals: Sequence[Goal],
    text: str,
    figure: "Figure | None" = None,
    finding: str = "",
) -> int:
    """Writes data/STUDY.csv and what `close` does."""
    options.write(study, frame)
    return close(options, study, goals, text, figure, finding)


def close(
    options: Options,
    study: str,
    goals: Sequence[Goal],
    text: str,
    figure: "Figure | None" = None,
    finding: str = "",
    source: str = "",
) -> int:
    """Writes data/STUDY.png and the section STUDY of its page, prints that section, and returns the exit status: 1
    where a goal is missed, and everything is written all the same.

    text : Markdown with {goals}, {picture} and {cases}, the files of all cases, where these belong
    finding : what was reached, in a sentence, on top of the picture
    source : what the picture was drawn from; data/STUDY.csv where it is empty
    """
    picture = ""
    if figure is not None:
        source = source or f"{study}.csv, drawn by {Path(sys.argv[0]).name}"
        save_figure(figure, options.output / "data" / f"{study}.png", finding, source)
        picture = f"data/{study}.png"
    warning = "**A quick trial of the script: a few small cases, no result.**\n\n" if options.quick else ""
    section = warning + text.replace("{goals}", goals_table(goals)).replace("{cases}", cases(""))
    if figure is None:
        section = re.sub(r"!\[[^]]*\]\(\{picture\}\)\n+", "", section)
    section = section.replace("{picture}", picture)
    write_section(options.output, study, section)
    print(section)
    return status(goals)


def signed(percent: float) -> str:
    """+1.2 %, or a dash for NaN."""
    return "–" if math.isnan(percent) else f"{percent:+.1f} %"


def seconds(value: float) -> str:
    """Seconds with four digits, or a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:.4g}"


def draw_goal(axes: Any, limit: float) -> None:
    """Zero, and how far from it the goal lets errors be, in per cent."""
    axes.axhline(0.0, color="#222222", lw=0.8)
    axes.axhspan(-limit, limit, color="#000000", alpha=0.05, lw=0, label=f"goal: ± {limit:g} %")
