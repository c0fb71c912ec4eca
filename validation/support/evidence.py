"""The pages of docs/evidence: which section is on which, what of a section fits there, and the table of all goals."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from support.goals import markdown
from support.page import replace_section, write_whole

ROOT = Path(__file__).resolve().parents[2]
#: Where the pages stand; tables and pictures are in their folder DATA.
EVIDENCE = ROOT / "docs" / "evidence"
DATA = "data"
#: Rows that a table of a page may have.
ROWS = 7
#: Goals that a table of a page may have.
MAX_GOALS = 5
GOALS = ("study", "table", "what", "goal", "reached", "published", "met")
#: The sections of each page that scripts write.
PAGES = {
    "accuracy_this_machine": ("demo_runs", "block_sizes", "real_programs", "recorded_hpl", "across_settings"),
    "accuracy_dahu": ("matrix_size", "factorial", "geometry", "coverage", "tuning_regret", "pair_differences"),
    "accuracy_made_up_machines": ("simulated_truth", "crowded_nodes", "planted_episodes", "episodes"),
    "accuracy_emulation": ("native_against_smpi", "same_bits", "emulated_program", "own_computing", "own_applications"),
    "published_studies": ("sensitivity_temporal", "sensitivity_switches", "sensitivity_nodes", "literature"),
    "models": (
        *("data_sheet", "published_hpl_predicted", "kernel_models", "network_fit", "message_progress"),
        *("segmentation_truth", "segmentation_tables", "segmentation", "generative", "content_factor"),
    ),
    "comparisons": (
        *("comparison_null", "comparison_states", "comparison_repeated", "comparison_spread"),
        *("planted_skew", "mpi_benchmarking", "probe_overhead"),
        *("clock_bench", "clocks_here"),
    ),
    "alarms": (
        *("alarms_nulls", "alarms_power", "alarms_sizes", "alarms_looks", "alarms_steps", "alarms_otava"),
        *("watch_published", "watch_replay", "watch_adversarial"),
    ),
}

Cells = list[list[str]]


def page_of(output: Path, study: str) -> Path:
    """The page that has the section of a study."""
    return output / next(f"{page}.md" for page, studies in PAGES.items() if study in studies)


def write_section(output: Path, study: str, text: str, page: Path | None = None, max_rows: int = ROWS) -> None:
    """Puts the section of a study into its page, long tables left out, and its goals into data/goals.csv.

    text : Markdown of the whole section
    page : where it is not that of `page_of`
    max_rows : of a table that stays
    """
    write_goals(output / DATA / "goals.csv", study, goals_in(text))
    others = tuple(one for studies in PAGES.values() for one in studies if one.startswith(f"{study}_"))
    names = sorted(path.name for path in (output / DATA).glob(f"{study}*.csv*"))
    files = [name for name in names if not (others and name.startswith(others))]
    replace_section(page or page_of(output, study), study, shortened(text, files, max_rows))


def keep_tables(output: Path, study: str, text: str) -> None:
    """Writes the tables of a section that its page leaves out, and that no other file has, as data/STUDY.csv."""
    rows: Cells = []

    def collect(table: Cells) -> str:
        if len(table) - 2 > ROWS:
            rows.extend([table[0], *table[2:]])
        return ""

    with_tables(text, collect)
    if rows:
        write_csv(output / DATA / f"{study}.csv", rows)


def write_csv(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """A table as CSV, the header first."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_whole(path, text.getvalue().encode())


def cases(text: str) -> str:
    """A part of a section that is printed, and of which the page names the file alone."""
    return f"<!-- cases -->\n{text}\n<!-- end cases -->"


def shortened(text: str, files: Sequence[str], max_rows: int = ROWS) -> str:
    """The text of a section as its page has it: of more than MAX_GOALS goals those that are missed and the first
    others; in the place of any other table of more than `max_rows`, and of what stands between the comments "cases" and
    "end cases", the files that have it. Tables that no file has stay whole.
    """
    links = ", ".join(f"[{name}]({DATA}/{name})" for name in files)

    def short(table: Cells) -> str:
        header, rows = table[0], table[2:]
        if header[-1] == "met":
            return markdown_of(fewer_goals(table))
        return f"*{len(rows)} rows: {links}.*" if len(rows) > max_rows and files else markdown_of(table)

    left_out = re.compile(r"<!-- cases -->\n.*?<!-- end cases -->", re.DOTALL)
    return with_tables(left_out.sub(f"*All cases: {links}.*", text), short)


def fewer_goals(table: Cells) -> Cells:
    """Those missed or not judged, the first of the others, and how many more there are; without an empty column."""
    header, line, rows = table[0], table[1], table[2:]
    unmet = [row[-1] != "yes" for row in rows]
    room = max(0, MAX_GOALS - 1 - sum(unmet)) if len(rows) > MAX_GOALS else len(rows)
    kept, left = [], 0
    for row, missed in zip(rows, unmet, strict=True):
        if missed or room:
            kept.append(row)
            room -= not missed
        else:
            left += 1
    if left:
        kept.append([f"{left} more: [goals.csv]({DATA}/goals.csv)", *[""] * (len(header) - 2), "yes"])
    filled = [place for place in range(len(header)) if place == 0 or any(row[place] for row in rows)]
    return [[row[place] for place in filled] for row in (header, line, *kept)]


def goals_in(text: str) -> list[tuple[str, ...]]:
    """A row for each goal of a section: number of its table, what, goal, reached, published, met."""
    found: list[tuple[str, ...]] = []
    numbers = iter(range(1, 1000))

    def collect(table: Cells) -> str:
        header = table[0]
        if header[0] == "" and header[-1] == "met":
            number = str(next(numbers))
            for row in table[2:]:
                published = row[3] if len(header) == len(GOALS) - 2 else ""
                found.append((number, *row[:3], published, row[-1]))
        return markdown_of(table)

    with_tables(text, collect)
    return found


def write_goals(path: Path, study: str, goals: Sequence[tuple[str, ...]]) -> None:
    """Puts the goals of a study in the place of those that the table of all has of it; of a new one at the end."""
    old = read_goals(path)
    place = next((number for number, row in enumerate(old) if row["study"] == study), len(old))
    rows = [list(row.values()) for row in old if row["study"] != study]
    rows[place:place] = [[study, *goal] for goal in goals]
    write_csv(path, [GOALS, *rows])


def read_goals(path: Path) -> list[dict[str, str]]:
    """The table of all goals; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def with_tables(text: str, change: Callable[[Cells], str]) -> str:
    """A Markdown text with each of its tables replaced by what `change` makes of the cells; row 1 is the line."""
    tables = re.compile(r"^\|.*\|$(?:\n\|.*\|$)+", re.MULTILINE)
    return tables.sub(lambda found: change(cells_of(found.group())), text)


def cells_of(table: str) -> Cells:
    """The cells of a Markdown table."""
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()]


def markdown_of(table: Cells) -> str:
    """A Markdown table of its cells, of which row 1 is the line."""
    return markdown(table[0], table[2:])
