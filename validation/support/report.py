"""The frame of every script (--help names its options): goals, tables, picture, section of its page, and exit status.

A script ends with `run_study`; one that has other tables with `run_main`, whose function ends with `finish` or `close`.
"""

import argparse
import csv
import io
import math
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pandas

from lepaute.errors import LepauteError
from lepaute.kit import files
from lepaute.kit.picture import entitle, measured_origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing that was to be reached; `met` None: it could not be judged."""

    what: str
    goal: str
    reached: str
    met: bool | None
    published: str = ""


def at_most(what: str, limit: float, reached: float, unit: str = "%", published: str = "") -> Goal:
    """A number that must not exceed `limit`; NaN where nothing was simulated."""
    seen, met = ("nothing simulated", None) if math.isnan(reached) else (f"{reached:.2f} {unit}", reached <= limit)
    return Goal(what, f"at most {limit:g} {unit}", seen, met, published)


def at_least(what: str, limit: float, reached: float, seen: str = "") -> Goal:
    """A percentage that must not fall below `limit`; seen : what the table says, if not that percentage."""
    return Goal(what, f"at least {limit:g} %", seen or f"{reached:.1f} %", bool(reached >= limit))


def goals_table(goals: Sequence[Goal]) -> str:
    """The goals as Markdown."""
    words = {True: "yes", False: "NO", None: "not judged"}
    rows = [(goal.what, goal.goal, goal.reached, goal.published, words[goal.met]) for goal in goals]
    return markdown(("", "goal", "reached", "published emulation", "met"), rows)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(header)}", *lines[1:]])


def reached(goals: Sequence[Goal], beginning: str) -> str:
    """What was reached of the first goal whose name begins so, in the words of the table."""
    return next(goal.reached for goal in goals if goal.what.startswith(beginning))


def status(goals: Sequence[Goal]) -> int:
    """Exit status: 1 where a goal is missed or could not be judged."""
    return 0 if all(goal.met for goal in goals) else 1


def write_atomic(path: Path, data: bytes) -> None:
    """Writes a file whole, and the folder that it is in where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, data)


def replace_section(page: Path, name: str, text: str) -> None:
    """Puts `text` between the markers of section `name` of a Markdown page; appends the section where it is new.

    The markers are comments: <!-- begin NAME ... --> and <!-- end NAME -->; what stands outside is left as it is.
    """
    old = page.read_text(encoding="utf-8") if page.is_file() else ""
    begin, end = f"<!-- begin {name}: generated, do not edit -->", f"<!-- end {name} -->"
    section = f"{begin}\n{text.strip()}\n{end}"
    pattern = re.compile(rf"<!-- begin {re.escape(name)}\b.*?<!-- end {re.escape(name)} -->", re.DOTALL)
    if pattern.search(old):
        new = pattern.sub(lambda _: section, old, count=1)
    else:
        new = f"{old.rstrip()}\n\n{section}\n" if old.strip() else f"{section}\n"
    write_atomic(page, new.encode())


def save_figure(figure: "Figure", path: Path, finding: str, source: str) -> None:
    """A figure with a constrained layout as a PNG: the finding on top, at the foot what it was drawn from.

    Legends of the figure itself are "outside lower". Without a date, so that the same figure gives the same file.
    """
    entitle(figure, finding, measured_origin(source))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120, metadata={"Software": None, "Title": finding.replace("\n", " ")})
    write_atomic(path, buffer.getvalue())


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
    "accuracy_this_machine": (
        *("demo_runs", "block_sizes", "real_programs", "recorded_hpl", "across_settings", "sharing"),
    ),
    "accuracy_dahu": ("matrix_size", "factorial", "geometry", "coverage", "tuning_regret", "pair_differences"),
    "accuracy_made_up_machines": ("simulated_truth", "crowded_nodes", "planted_episodes", "episodes", "why"),
    "accuracy_emulation": (
        *("native_against_smpi", "same_bits", "emulated_program", "own_computing", "own_applications"),
        *("collectives", "learnt", "mixed_clusters"),
    ),
    "published_studies": (
        *("sensitivity_temporal", "sensitivity_switches", "sensitivity_nodes", "literature", "recounted"),
    ),
    "models": (
        *("data_sheet", "published_hpl_predicted", "kernel_models", "network_fit", "message_progress"),
        *("segmentation_truth", "segmentation", "generative", "content_factor", "model_law"),
    ),
    "comparisons": (
        *("comparison_null", "comparison_states", "comparison_repeated", "comparison_spread"),
        *("planted_skew", "mpi_benchmarking", "probe_overhead"),
        *("clock_bench", "clocks_here"),
    ),
    "alarms": (
        *("alarms_nulls", "alarms_power", "alarms_small", "alarms_sizes", "alarms_looks"),
        *("alarms_otava", "watch_published", "watch_replay", "watch_adversarial"),
    ),
}

Cells = list[list[str]]
TABLE = re.compile(r"^\|.*\|$(?:\n\|.*\|$)+", re.MULTILINE)
#: In the place of {cases} where a section is printed; its page names the files.
CASES = "<!-- cases -->\n\n<!-- end cases -->"


def page_of(output: Path, study: str) -> Path:
    """The page that has the section of a study."""
    return output / next(f"{page}.md" for page, studies in PAGES.items() if study in studies)


def write_section(output: Path, study: str, text: str) -> None:
    """Puts the section of a study, Markdown, into its page, long tables left out, and its goals into data/goals.csv."""
    write_goals(output / DATA / "goals.csv", study, goals_in(text))
    others = tuple(one for studies in PAGES.values() for one in studies if one.startswith(f"{study}_"))
    names = sorted(path.name for path in (output / DATA).glob(f"{study}*.csv*"))
    files = [name for name in names if not (others and name.startswith(others))]
    replace_section(page_of(output, study), study, shortened(text, files))


def keep_tables(output: Path, study: str, text: str) -> None:
    """Writes the tables of a section that its page leaves out, and that no other file has, as data/STUDY.csv."""
    long = [table for table in tables_in(text) if len(table) - 2 > ROWS]
    rows = [row for header, _, *own in long for row in (header, *own)]
    if rows:
        write_csv(output / DATA / f"{study}.csv", rows)


def write_csv(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """A table as CSV, the header first."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_atomic(path, text.getvalue().encode())


def shortened(text: str, files: Sequence[str]) -> str:
    """The text of a section as its page has it: of more than MAX_GOALS goals those that are missed and the first
    others; in the place of any other table of more than ROWS, and of CASES, the files that have it. Tables that no file
    has stay whole.
    """
    links = ", ".join(f"[{name}]({DATA}/{name})" for name in files)

    def short(found: re.Match[str]) -> str:
        header, _, *rows = table = cells_of(found.group())
        if header[-1] == "met":
            return markdown_of(fewer_goals(table))
        return f"*{len(rows)} rows: {links}.*" if len(rows) > ROWS and files else markdown_of(table)

    return TABLE.sub(short, text.replace(CASES, f"*All cases: {links}.*"))


def fewer_goals(table: Cells) -> Cells:
    """Those missed or not judged, the first of the others, and how many more there are; without an empty column."""
    header, line, *rows = table
    unmet = [row[-1] != "yes" for row in rows]
    room = max(0, MAX_GOALS - 1 - sum(unmet)) if len(rows) > MAX_GOALS else len(rows)
    kept = [row for at, row in enumerate(rows) if unmet[at] or at + 1 - sum(unmet[:at]) <= room]
    if left := len(rows) - len(kept):
        kept.append([f"{left} more: [goals.csv]({DATA}/goals.csv)", *[""] * (len(header) - 2), "yes"])
    filled = [place for place in range(len(header)) if place == 0 or any(row[place] for row in rows)]
    return [[row[place] for place in filled] for row in (header, line, *kept)]


def goals_in(text: str) -> list[tuple[str, ...]]:
    """A row for each goal of a section: number of its table, what, goal, reached, published, met."""
    found: list[tuple[str, ...]] = []
    judged = (table for table in tables_in(text) if table[0][0] == "" and table[0][-1] == "met")
    for number, (header, _, *rows) in enumerate(judged, start=1):
        for row in rows:
            published = row[3] if len(header) == len(GOALS) - 2 else ""
            found.append((str(number), *row[:3], published, row[-1]))
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


def tables_in(text: str) -> list[Cells]:
    """The cells of each table of a Markdown text; row 1 is the line."""
    return [cells_of(table) for table in TABLE.findall(text)]


def cells_of(table: str) -> Cells:
    """The cells of a Markdown table."""
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()]


def markdown_of(table: Cells) -> str:
    """A Markdown table of its cells, of which row 1 is the line."""
    return markdown(table[0], table[2:])


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for.

    reference : the folder of the reference data
    output : where the pages stand; tables and pictures go into its folder data/
    quick : a few small cases, to see that the script works; nothing it shows is a result
    full : everything, where the script takes a subset by default
    summarise : no simulation: judge and draw again what the table of the last run holds
    own : values of the script's own options
    """

    reference: Path
    output: Path
    quick: bool
    full: bool
    summarise: bool
    own: argparse.Namespace = field(default_factory=argparse.Namespace)

    def data(self, name: str) -> Path:
        """A file of the reference data."""
        return self.reference / name

    def table(self, study: str, kind: str = "csv") -> Path:
        """The table that a study writes, a row a case; kind : csv.gz for a packed one."""
        return self.output / "data" / f"{study}.{kind}"

    def write(self, name: str, frame: "pandas.DataFrame", digits: str | None = None) -> None:
        """Writes a table, whole; digits : such as %.4g."""
        write_atomic(self.table(name), frame.to_csv(index=False, float_format=digits).encode())


def options_of(
    description: str | None,
    needs: Sequence[str] = (),
    has_subset: bool = False,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    has_quick: bool = True,
) -> Options:
    """The options of the command line; ends the program with status 2 and one line where reference data are missing.

    needs : files of the reference data, relative to its folder
    has_subset : whether --full means something
    own : the script's own options by name, or names, with the arguments of add_argument
    has_quick : whether --quick means something
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ROOT.parent / "shared" / "reference"
    parser.add_argument("--reference", type=Path, default=default, help="the folder of the reference data")
    parser.add_argument("--output", type=Path, help="where the pages stand (docs/evidence; build/quick with --quick)")
    if has_quick:
        parser.add_argument("--quick", action="store_true", help="a few small cases, to see that the script works")
    parser.add_argument("--summarise", action="store_true", help="judge and draw the table of the last run again")
    if has_subset:
        parser.add_argument("--full", action="store_true", help="every case, not the subset")
    for name, how in (own or {}).items():
        parser.add_argument(*name.split(), **how)
    found = parser.parse_args()
    missing = [name for name in needs if not (found.reference / name).is_file()]
    if missing:
        print(
            f"{Path(sys.argv[0]).name}: no reference data: {found.reference / missing[0]} is not there, so nothing was "
            "validated; give their folder with --reference",
            file=sys.stderr,
        )
        sys.exit(2)
    quick = has_quick and found.quick
    output = found.output or (ROOT / "build" / "quick" if quick else EVIDENCE)
    return Options(found.reference, output, quick, has_subset and found.full, found.summarise, found)


Measure = Callable[[], pandas.DataFrame]


def stored(options: Options, name: str, measure: Measure, digits: str | None = None) -> pandas.DataFrame:
    """The table that is there with --summarise; otherwise what `measure` gives, written with `digits` such as %.4g."""
    path = options.table(name, "csv.gz")
    return pandas.read_csv(path) if options.summarise else write(path, measure(), digits)


def in_scratch(prefix: str, measure: Callable[..., pandas.DataFrame], *arguments: object) -> pandas.DataFrame:
    """What it measures with these arguments and a scratch folder."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        return measure(*arguments, Path(name))


def stored_parts(
    options: Options, name: str, column: str, measures: Mapping[str, Measure], only: str | None = None
) -> list[pandas.DataFrame]:
    """The same of a table of several parts, named in `column`; `only`: measure this one, keep the others."""
    path = options.table(name, "csv.gz")
    kept = [part for part in measures if options.summarise or only not in (None, part)]
    old = pandas.read_csv(path) if kept else pandas.DataFrame({column: []})
    parts = [
        old[old[column] == part] if part in kept else measure().assign(**{column: part})
        for part, measure in measures.items()
    ]
    if not options.summarise:
        write(path, pandas.concat(parts, ignore_index=True))
    return parts


def write(path: Path, frame: pandas.DataFrame, digits: str | None = None) -> pandas.DataFrame:
    """Writes it, the same bytes for the same table, and reads it back as a later run would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, float_format=digits, compression={"method": "gzip", "mtime": 1})
    return pandas.read_csv(path)


def run_study(
    rows: Callable[[Options], pandas.DataFrame],
    judged: Callable[[pandas.DataFrame], Sequence[Goal]],
    text: Callable[[pandas.DataFrame], str] | str,
    picture: "Callable[[pandas.DataFrame, Sequence[Goal]], tuple[Figure | None, str]] | None" = None,
    *,
    name: str = "",
    needs: Sequence[str] = (),
    own: Mapping[str, Mapping[str, Any]] | None = None,
    has_subset: bool = False,
    has_quick: bool = True,
    dtype: Any = None,
    packed: str | None = None,
    source: str = "",
) -> NoReturn:
    """The whole of a script with one table: makes it, or reads it with --summarise; ends the program as `close` says.

    rows : the table, a row a case;  judged : the goals of its docstring;  text : the section of its page
    picture : with what it shows, in a sentence;  dtype : of columns that a CSV file leaves open
    name : of the study, that of the script unless given;  source : as for `close`
    packed : the table is one of many rows, kept as .csv.gz with these digits ("" for all)
    needs, own, has_subset, has_quick : as for `options_of`
    """
    script = sys.modules["__main__"]
    name = name or Path(str(script.__file__)).stem

    def main() -> int:
        options = options_of(script.__doc__, needs, has_subset, own, has_quick)
        if packed is not None:
            frame = stored(options, name, lambda: rows(options), packed or None)
        else:
            frame = pandas.read_csv(options.table(name), dtype=dtype) if options.summarise else rows(options)
            options.write(name, frame)
        goals = judged(frame)
        figure = picture(frame, goals) if picture is not None else (None, "")
        return close(options, name, goals, text if isinstance(text, str) else text(frame), *figure, source)

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


def finish(options: Options, study: str, frame: pandas.DataFrame, *rest: Any) -> int:
    """Writes data/STUDY.csv and what `close` does with the rest: goals, text, and perhaps a figure and its finding."""
    options.write(study, frame)
    return close(options, study, *rest)


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
    section = warning + text.replace("{goals}", goals_table(goals)).replace("{cases}", CASES)
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
