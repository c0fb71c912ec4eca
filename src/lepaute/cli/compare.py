"""`lepaute compare`: MPI libraries, measured side by side into an archive, and which is faster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.archive import Archive
from lepaute.cli.options import FORCE_HELP
from lepaute.cli.terminal import interrupt_on_sigterm, json_text, note, notes_printed, progress_bar, warn
from lepaute.errors import InputError
from lepaute.kit.options import option_field
from lepaute.kit.outputs import check_archive_output, check_outputs
from lepaute.kit.quantities import share_of, time_of
from lepaute.kit.tables import text_table
from lepaute.kit.text import counted, exact_size, seconds

if TYPE_CHECKING:
    from lepaute.compare.comparison import Comparison
    from lepaute.compare.verdicts import Correction

#: Exit status where --strict wants to know and the measurements do not tell.
UNDECIDED = 3
MOST_VIOLATIONS, MOST_DERIVED = 5, 20


@dataclass(frozen=True)
class MeasureOptions:
    """What is measured: arguments of `measure_libraries`."""

    ops: str = option_field(
        "bcast,allreduce",
        "Operations, such as bcast; ibcast: nonblocking; bcast_init: persistent; scan_in_place: MPI_IN_PLACE.",
        metavar="OP,...",
    )
    sizes: str = option_field("1:1M", "Message sizes in bytes, a range or a list such as 8,64K.", metavar="FROM:TO")
    ranks: int = option_field(2, "Ranks.", name="np", also=("--ranks",))
    datatype: str = option_field(
        "double", "Of reductions, whose sizes are whole counts of it: byte, int8_t, int, long, float, double."
    )
    op: str = option_field("sum", "Of reductions: sum, prod, max, min, band, bor, bxor, land, lor.", metavar="OP")
    root: int = option_field(0, "Rank, of operations that have a root.", minimum=0)
    compute_s: float | None = option_field(
        None,
        "Nonblocking operations also with so much work before they are waited for: shows what overlaps.",
        name="compute",
        metavar="TIME",
        quantity=time_of,
    )
    precision: float = option_field(
        "2%", "Wanted half-width of the 95 % interval of a mean.", metavar="SHARE", quantity=share_of
    )
    budget_s: float = option_field(
        "5min", "Time for all mpiruns together.", name="budget", metavar="TIME", quantity=time_of
    )
    calls: int | None = option_field(None, "Calls of each case in an mpirun; derived from a trial unless given.")
    mpiruns: int | None = option_field(None, "Starts of each library, whatever the budget; derived unless given.")
    synchronisation: str | None = option_field(
        None,
        "Before each call: MPI_Barrier, dissemination, double, window or round-time (the default; dissemination where "
        "ranks share cores).",
        metavar="METHOD",
    )
    clock: str = option_field("clock_gettime", "MPI_Wtime, clock_gettime or rdtscp.", metavar="CLOCK")
    clock_method: str = option_field("HCA", "SKaMPI, Netgauge, JK, HCA, HCA2 or HCA3.", metavar="METHOD")
    cold: bool = option_field(False, "Overwrite the private last-level cache before each call.")
    warm_up: int = option_field(5, "Calls before each batch; kept, with negative numbers.")
    limit_s: float | None = option_field(
        None,
        "Time after which an mpirun is ended; in proportion to its trial unless given.",
        name="limit",
        metavar="TIME",
        quantity=time_of,
    )
    seed: int = option_field(1, "Of sizes and of every order.", minimum=0)
    sessions: int = option_field(
        1, "Sessions, an archive each (NAME-1.zip and so on); the verdict is over these, from three on.", minimum=1
    )
    every_s: float = option_field(
        "2h", "From the beginning of a session to that of the next one.", name="every", metavar="TIME", quantity=time_of
    )
    resume: bool = option_field(False, "Resume an interrupted campaign, or the sessions that are left.")


def _correction(word: str) -> "Correction":
    from lepaute.compare.verdicts import correction_of

    return correction_of(word)


@dataclass(frozen=True)
class CompareOptions:
    """What is made of the measurements."""

    margin: float = option_field(
        "2%", "A difference that is certainly smaller counts as none.", metavar="SHARE", quantity=share_of
    )
    correction: Any = option_field(
        "fdr",
        "Of the p-values of all rows: fdr bounds the share of false ones among the decided (Benjamini and Hochberg), "
        "holm the chance of any.",
        metavar="fdr|holm",
        parse=_correction,
    )
    primary: list[str] | None = option_field(
        None,
        "A row that counts most; the campaign is planned for these, corrected by themselves.",
        metavar="OP:SIZE",
    )
    left: str | None = option_field(None, "The library to compare, where archives hold more than two.", metavar="LABEL")
    right: str | None = option_field(None, "The one to compare it with.", metavar="LABEL")
    fail_if_slower: float | None = option_field(
        None,
        "End with status 1 where the right library is shown to take longer than the left one by more.",
        metavar="SHARE",
        quantity=share_of,
    )
    strict: bool = option_field(False, "With --fail-if-slower: end with status 3 where a row is undecided.")
    measure_only: bool = option_field(False, "Write the archive, and say nothing of which is faster.")
    report: list[Path] | None = option_field(
        None,
        "The comparison: a page (.html), all data (.json), the rows (.csv), a LaTeX table (.tex), or a figure (.png, "
        ".svg, .pdf); several times.",
        metavar="FILE",
    )
    tune: Path | None = option_field(
        None,
        "Measures a library with each of its algorithms; writes a file that chooses those shown faster.",
        metavar="FILE",
    )
    as_json: bool = option_field(False, "Print the comparison as one JSON object.", name="json")
    force: bool = option_field(False, FORCE_HELP)

    def __post_init__(self) -> None:
        from lepaute.compare.report import check_name

        if not self.margin > 0:
            raise InputError(f"--margin is {100 * self.margin:g} %; it must be above 0, such as 2%")
        if self.strict and self.fail_if_slower is None:
            raise InputError("--strict is about --fail-if-slower; give that, too")
        for path in self.report or ():
            check_name(path)

    def check_labels(self, labels: Sequence[str]) -> None:
        """Raises InputError where --left or --right is not among the labels."""
        for option, label in (("--left", self.left), ("--right", self.right)):
            if label is not None and label not in labels:
                raise InputError(f"{option} is {label[:40]!r}; the libraries are called {', '.join(labels)}")

    def compared(self, *campaigns: Archive, left: str | None = None, right: str | None = None) -> "Comparison":
        """`compare.comparison.archives` with these options; left, right: in the place of those of the options."""
        from lepaute.compare.comparison import archives
        from lepaute.measure.comparison.cases import rows_of

        return archives(
            *campaigns,
            left=left or self.left,
            right=right or self.right,
            margin=self.margin,
            correction=self.correction,
            primary=rows_of(self.primary or ()) or None,
        )


def command(
    libraries: Annotated[
        list[str],
        typer.Argument(
            metavar="LIBRARY...",
            help="A name (openmpi, mpich), a prefix (/opt/mpi), a compiler wrapper, or module:NAME; or LABEL= and one. "
            "Archives (LEFT.zip RIGHT.zip, or one of each session): compares what they hold. Two files, or LABEL=FILE, "
            "of what the OSU or the Intel MPI benchmarks printed: compares these as far as they go.",
            show_default=False,
        ),
    ],
    measuring: MeasureOptions,
    options: CompareOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Archive to write.")] = Path("comparison.zip"),
) -> None:
    """Measures MPI libraries side by side on this machine, writes an archive with every call, and compares them.

    Several mpiruns of each library, in blocks in shuffled order; sizes and operations are shuffled inside. Close other
    programs first; `lepaute doctor` reports what would disturb. Archives given instead of libraries are compared, and
    so are files of what other benchmarks printed.
    """
    from lepaute.archive.mpi_campaign import facts

    if options.tune is not None:
        _check_tuning(libraries, options, measuring)
        if libraries[0].endswith(".zip"):
            check_outputs({"--tune": options.tune}, inputs=libraries, force=options.force)
            _write_tuning(Archive.open(libraries[0]), options.tune)
            return
    elif compared := _compared_files(libraries, options):
        _show(compared, options)
        return
    measured = _measured(libraries, measuring, options, output)
    if options.measure_only:
        return
    if options.tune is not None:
        _write_tuning(measured[0], options.tune)
    elif len(facts(measured[0]).labels) > 1:
        _show(_compared_campaigns(measured, options), options)


def _check_tuning(libraries: Sequence[str], options: CompareOptions, measuring: MeasureOptions) -> None:
    if measuring.sessions > 1:
        raise InputError("--tune is of one session; leave out --sessions")
    if len(libraries) > 1:
        raise InputError(f"--tune is of one library, or of the archive of one; there are {len(libraries)}")
    if options.report or options.measure_only or options.as_json or options.left or options.right:
        raise InputError(
            "--tune writes rules and compares no two libraries: leave out --report, --json, --left, --right and "
            "--measure-only"
        )


def _compared_files(words: Sequence[str], options: CompareOptions) -> "list[Comparison]":
    """The comparisons of the files that the words name; none where they name libraries.

    Raises InputError for a mixture, for files that cannot be compared, and where a report cannot be written.
    """
    from lepaute.compare.benchmark_output import named_output, outputs

    printed = [output for word in words if (output := named_output(word)) is not None]
    campaigns = [word for word in words if word.endswith(".zip")]
    if not (printed or campaigns):
        return []
    if len(words) not in (len(printed), len(campaigns)):
        raise InputError(
            f"{' '.join(words)}: archives, outputs of benchmarks and libraries cannot be mixed; give one kind"
        )
    inputs: list[str | Path] = [*campaigns, *(path for _, path in printed)]
    check_outputs({"--report": options.report}, inputs=inputs, force=options.force)
    if campaigns:
        return _compared_campaigns([Archive.open(each) for each in campaigns], options)
    if len(printed) != 2 or options.left or options.right:
        raise InputError("two outputs of benchmarks are compared, in the order in which they are given: LEFT RIGHT")
    (left_label, left), (right_label, right) = printed
    return [
        outputs(
            left,
            right,
            left_label=left_label,
            right_label=right_label,
            margin=options.margin,
            correction=options.correction,
        )
    ]


def _compared_campaigns(campaigns: Sequence[Archive], options: CompareOptions) -> "list[Comparison]":
    """Of campaigns that all have more than two libraries, each with the reference: --left, or the first one."""
    from lepaute.archive.mpi_campaign import facts
    from lepaute.compare.comparison import shared_labels

    labels = shared_labels([facts(each) for each in campaigns])
    if len(labels) <= 2 or options.right is not None:
        return [options.compared(*campaigns)]
    options.check_labels(labels)
    reference = options.left or labels[0]
    others = [label for label in labels if label != reference]
    if options.report:
        raise InputError(f"--report is of two libraries; name one of {', '.join(others)} with --right")
    return [options.compared(*campaigns, left=reference, right=label) for label in others]


def _measured(libraries: list[str], measuring: MeasureOptions, options: CompareOptions, output: Path) -> list[Archive]:
    """Measures, and prints what; the archive of every session.

    Raises InputError where what is to be shown cannot come of these libraries.
    """
    from lepaute.archive.mpi_campaign import facts
    from lepaute.measure.comparison.libraries import named_libraries
    from lepaute.measure.comparison.sessions import measure_sessions, session_archives

    targets = session_archives(output, measuring.sessions)
    outputs = [path for path in targets if not (measuring.resume and len(targets) > 1 and path.exists())]
    check_outputs({"--output": outputs, "--report": options.report, "--tune": options.tune}, force=options.force)
    if options.report and options.measure_only:
        raise InputError("--report is of a comparison, and --measure-only makes none; leave one of them out")
    if options.fail_if_slower is not None and (options.measure_only or len(libraries) == 1):
        raise InputError("--fail-if-slower is of a comparison, and there is none; leave it out")
    if options.report and len(libraries) != 2 and not (options.left and options.right):
        raise InputError("--report is of two libraries; name them with --left and --right")
    options.check_labels([library.label for library in named_libraries(libraries)])
    arguments = dict(vars(measuring))
    if options.tune is not None:
        libraries, arguments["mpiruns"] = variants_to_measure(libraries[0], measuring)
    interrupt_on_sigterm()
    for path in outputs:
        check_archive_output(path, force=options.force)
    with notes_printed(), progress_bar() as tell:
        paths = measure_sessions(libraries, output, **arguments, primary=options.primary or (), progress=tell)
    measured = [Archive.open(path) for path in paths]
    abouts = [facts(each) for each in measured]
    warn(list(dict.fromkeys(line for each in measured for line in each.about.warnings)))
    if not options.as_json:
        for library in abouts[0].libraries:
            print(f"{library.label}: {library.family} {library.version} ({library.mpirun})")
        for path, archive, about in zip(paths, measured, abouts, strict=True):
            print(
                f"{counted(len(about.cases), 'case')}, {counted(about.mpiruns, 'mpirun')} of each library in "
                f"{seconds(about.spent_s)}; planned at least {seconds(about.planned_s)}"
            )
            print(f"{path}: archive {archive.id[:12]}, {len(archive.members())} members")
    return measured


def variants_to_measure(library: str, measuring: MeasureOptions) -> tuple[list[str], int]:
    """A library as it is and its variants, and how many mpiruns each takes where the user does not say.

    Raises InputError for a library or an operation that no file could be written for.
    """
    from lepaute.compare.tuning import algorithms_of, check_mpich, check_openmpi, mpiruns_to_tune
    from lepaute.kit.mpi_launcher import OPEN_MPI
    from lepaute.measure.comparison.cases import cases_of, operations_of, reduction_in, reduction_of, sizes_of
    from lepaute.measure.comparison.libraries import algorithm_variants, named_libraries, openmpi_algorithms

    ranks, reduction = measuring.ranks, reduction_of(measuring.datatype, measuring.op)
    (named,) = named_libraries([library])
    chosen = operations_of(measuring.ops)
    sizes_bytes = sizes_of(measuring.sizes, measuring.seed, reduction_in(chosen, reduction))
    cases = cases_of(chosen, sizes_bytes, ranks, reduction)
    operations = list(dict.fromkeys(case.operation for case in cases))
    if named.library.family == OPEN_MPI:
        check_openmpi(named.library.version, operations)
        algorithms = openmpi_algorithms(named)
    else:
        check_mpich(named.library.family, named.library.version)
        algorithms = {name.lower(): algorithms_of(name, ranks) for name in operations}
    variants = algorithm_variants(named, cases, algorithms)
    return list(variants.specs), measuring.mpiruns or mpiruns_to_tune(variants.tests)


def _write_tuning(campaign: Archive, path: Path) -> None:
    from lepaute.compare.tuning import tuning_of
    from lepaute.kit.files import write_whole

    tuning = tuning_of(campaign)
    warn(tuning.warnings)
    for choice in tuning.choices:
        print(choice)
    write_whole(path, tuning.text.encode())
    print(f"{path}: other algorithms than the default for {counted(tuning.changed, 'row')} of {len(tuning.choices)}")
    print(tuning.use.format(path.absolute()))


def _show(comparisons: "Sequence[Comparison]", options: CompareOptions) -> None:
    """Raises typer.Exit: 1 where a library is slower than it may be, 3 where that is not known and is to be."""
    from lepaute.compare.report import write_report
    from lepaute.compare.verdicts import gate

    if len(comparisons) == 1:
        for path in options.report or ():
            write_report(comparisons[0], path)
            note(f"wrote {path}")
    if options.as_json:
        several = {"reference": comparisons[0].left, "comparisons": [each.to_dict() for each in comparisons]}
        print(json_text(several if len(comparisons) > 1 else comparisons[0].to_dict()))
    else:
        warn(_distinct(comparisons, lambda each: each.warnings))
        print("\n".join(_lines(comparisons)))
    if options.fail_if_slower is None:
        return
    gates = [gate(each.verdicts, each.right, options.fail_if_slower) for each in comparisons]
    for each in gates:
        note(each.sentence)
    if any(each.slower for each in gates):
        raise typer.Exit(1)
    if options.strict and any(each.undecided for each in gates):
        raise typer.Exit(UNDECIDED)


def _distinct(comparisons: "Sequence[Comparison]", lines_of: "Callable[[Comparison], Sequence[str]]") -> list[str]:
    return list(dict.fromkeys(line for comparison in comparisons for line in lines_of(comparison)))


def _lines(comparisons: "Sequence[Comparison]") -> list[str]:
    """What was measured, a table, what follows from it, and the answers."""
    from lepaute.compare.setting import setting_lines

    lines = _distinct(comparisons, lambda each: [*setting_lines(each), f"compared: {each.estimand}"])
    if len(comparisons) > 1:
        lines.append(_table_beside_reference(comparisons))
    else:
        lines += [_table(comparisons[0]), *_consequences(comparisons[0])]
    return [*lines, *(f"{each.answer[:1].upper()}{each.answer[1:]}." for each in comparisons)]


def _table(comparison: "Comparison") -> str:
    """A line a row: what it is, both times, the algorithms where one is known, and the verdict with its stars."""
    from lepaute.compare.setting import algorithms
    from lepaute.compare.wording import operation_name, sentence

    left, right = comparison.left, comparison.right
    table: list[list[str]] = [["operation", "size", left, right, "algorithms", ""]]
    table += [
        [
            operation_name(row),
            exact_size(row.size_bytes),
            seconds(row.left_s),
            seconds(row.right_s),
            algorithms(comparison, row),
            f"{sentence(row, left, right)} {row.stars}",
        ]
        for row in comparison.verdicts
    ]
    if not any(row[4] for row in table[1:]):
        table = [[*row[:4], row[5]] for row in table]
    return text_table(table[0], table[1:], left=(0, 4, 5))


def _table_beside_reference(comparisons: "Sequence[Comparison]") -> str:
    """Several libraries, each beside the reference, the left one of all."""
    from lepaute.compare.wording import change, operation_name

    rows: dict[Any, list[str]] = {}
    for number, comparison in enumerate(comparisons):
        for row in comparison.verdicts:
            first = [operation_name(row), exact_size(row.size_bytes), seconds(row.left_s)]
            key = (row.operation, row.form, row.size_bytes)
            cells = rows.setdefault(key, [*first, *["–"] * len(comparisons)])
            cells[3 + number] = f"{seconds(row.right_s)}: {change(row)} {row.stars}".rstrip()
    titles = ("operation", "size", comparisons[0].left, *(comparison.right for comparison in comparisons))
    return text_table(titles, rows.values(), left=None)


def _consequences(comparison: "Comparison") -> list[str]:
    """What is derived from several rows, and the performance guidelines that are violated."""
    from lepaute.compare.derived import derived_lines
    from lepaute.compare.wording import violation_sentence

    derived = derived_lines(comparison)
    lines = derived[:MOST_DERIVED]
    if (more := len(derived) - MOST_DERIVED) > 0:
        lines.append(f"and {more} more such lines; see --report")
    violated = [guideline for guideline in comparison.guidelines if guideline.is_violated]
    lines += [f"{each.library}: {violation_sentence(each)}" for each in violated[:MOST_VIOLATIONS]]
    if (more := len(violated) - MOST_VIOLATIONS) > 0:
        lines.append(f"and {more} more performance guidelines are violated; see --json")
    return lines
