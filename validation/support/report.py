"""The end of every script: table, picture, section of the page, and the exit status."""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from support.goals import Goal, goals_table, status
from support.options import Options
from support.page import replace_section, save_figure, write_whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def finish(
    options: Options, study: str, frame: "pd.DataFrame", goals: Sequence[Goal], text: str, figure: "Figure | None"
) -> int:
    """Writes accuracy/STUDY.csv, accuracy/STUDY.png and the section STUDY of accuracy.md, prints that section, and
    returns the exit status: 1 where a goal is missed, and everything is written all the same.

    text : Markdown with {goals} and {picture} where these belong
    """
    write_whole(options.table(study), frame.to_csv(index=False).encode())
    picture = ""
    if figure is not None:
        save_figure(figure, options.output / "accuracy" / f"{study}.png")
        picture = f"accuracy/{study}.png"
    warning = "**A quick trial of the script: a few small cases, no result.**\n\n" if options.quick else ""
    section = warning + text.replace("{goals}", goals_table(goals))
    if figure is None:
        section = re.sub(r"!\[[^]]*\]\(\{picture\}\)\n+", "", section)
    section = section.replace("{picture}", picture)
    replace_section(options.output / "accuracy.md", study, section)
    print(section)
    return status(goals)


def signed(percent: float) -> str:
    """+1.2 %, or a dash for NaN."""
    return "–" if math.isnan(percent) else f"{percent:+.1f} %"


def seconds(value: float) -> str:
    """Seconds with four digits, or a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:.4g}"
