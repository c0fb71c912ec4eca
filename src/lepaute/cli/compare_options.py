"""Options of `lepaute compare`: what is measured, and what is made of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.cli.options import DETAILS_HELP, FORCE_HELP
from lepaute.cli.terminal import note
from lepaute.errors import InputError
from lepaute.kit.files import check_output
from lepaute.kit.options import SHARE, TIME, option_field, word_of
from lepaute.kit.picture import files_of
from lepaute.kit.quantities import numbers_of
from lepaute.measure.archive import Archive
from lepaute.measure.comparison.cases import rows_of

if TYPE_CHECKING:
    from lepaute.measure.compare.comparison import Comparison


@dataclass(frozen=True)
class MeasureOptions:
    """What is measured: arguments of `measure_libraries`."""

    ops: str = option_field(
        "bcast,allreduce",
        "Operations, such as bcast; ibcast: nonblocking; bcast_init: persistent; scan_in_place: MPI_IN_PLACE.",
        metavar="OP,...",
    )
    sizes: str = option_field("1:1M", "Message sizes in bytes, a range or a list such as 8,64K.", metavar="FROM:TO")
    ranks: tuple[int, ...] = option_field(
        "2",
        "Ranks; several numbers are measured in turn: 2,4,8.",
        name="np",
        also=("--ranks",),
        metavar="RANKS,...",
        quantity=numbers_of,
    )
    ranks_per_node: int | None = option_field(None, "Ranks on each node in turn; default: one on each core.", minimum=1)
    hostfile: Path | None = option_field(
        None, "The nodes and the ranks of each, instead of --nodes: lines as host slots=N or host:N."
    )
    factors: list[str] | None = option_field(
        None,
        "Vary this too, crossed with libraries: pinning=core,spread,none, cache=warm,cold, pages=default,small,huge, "
        "frequency, compiler, flags, mca.PARAMETER, or a VARIABLE of the environment.",
        name="factor",
        metavar="NAME=a,b",
    )
    recording: Path | None = option_field(
        None,
        "A recording (lepaute record): measures the collective calls that take most of its time, on as many ranks; "
        "instead of --ops, --sizes, --np, --primary and --datatype.",
        name="for",
        metavar="TRACE",
    )
    datatype: str = option_field(
        "double", "Data type of reductions: byte, int8_t, int, long, float, double; sizes are whole numbers of it."
    )
    op: str = option_field("sum", "Reduction operator: sum, prod, max, min, band, bor, bxor, land, lor.", metavar="OP")
    root: int = option_field(0, "Root rank of the operations that have one.", minimum=0)
    compute_s: float | None = option_field(
        None, "Time nonblocking operations also with this much work before the wait: shows what overlaps.", **TIME
    )
    precision: float = option_field("2%", "Wanted half-width of the 95 % interval of a mean.", **SHARE)
    budget_s: float = option_field(
        "5min", "Time for all mpiruns, sentinels apart; half as much again for repetitions of disturbed ones.", **TIME
    )
    calls: int | None = option_field(None, "Calls of each case in an mpirun; default: derived from a trial.")
    mpiruns: int | None = option_field(None, "Starts of each library, whatever the budget; default: derived.")
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
    limit_s: float | None = option_field(None, "Time after which an mpirun is ended; default: by its trial.", **TIME)
    seed: int = option_field(1, "Seed of sizes and of every order.", minimum=0)
    sessions: int = option_field(
        1, "Sessions, an archive each (NAME-1.zip and so on); the verdict is over these, from three on.", minimum=1
    )
    every_s: float = option_field("2h", "From the beginning of a session to that of the next one.", **TIME)
    resume: bool = option_field(False, "Resume an interrupted campaign, or the sessions that are left.")


@dataclass(frozen=True)
class CompareOptions:
    """What is made of the measurements."""

    margin: float = option_field("2%", "Differences shown to be smaller than this count as none.", **SHARE)
    correction: Any = option_field(
        "fdr",
        "Correction of the p-values of all rows: fdr bounds the share of false ones among the decided (Benjamini and "
        "Hochberg), holm the chance of any.",
        metavar="fdr|holm",
        parse=lambda word: word_of(word, ("fdr", "holm"), "--correction"),
    )
    primary: list[str] | None = option_field(
        None, "A row that counts most; the campaign is planned for these, corrected by themselves.", metavar="OP:SIZE"
    )
    left: str | None = option_field(None, "The library to compare, where archives hold more than two.", metavar="LABEL")
    right: str | None = option_field(None, "The one to compare it with.", metavar="LABEL")
    fail_if_slower: float | None = option_field(
        None, "Status 1 where the right library is shown to take longer by more, 3 where a row is not tested.", **SHARE
    )
    baseline: list[str] | None = option_field(
        None,
        "An archive of an earlier day, of one binary: what differs between days is learnt from four days or more, with "
        "fewer no build fails. Compares one library, or the archive of a build, with these.",
        metavar="FILE.zip",
    )
    strict: bool = option_field(False, "With --fail-if-slower: end with status 3 where a row is undecided, too.")
    measure_only: bool = option_field(False, "Write the archive, and say nothing of which is faster.")
    report: Path | None = option_field(None, "The comparison as a page.", metavar="FILE.html")
    plot: Path | None = option_field(None, "Change by size, as .png, .svg or .pdf.", metavar="FILE")
    scaling: Path | None = option_field(
        None, "Times by the number of ranks, of a campaign with several, as .png, .svg or .pdf.", metavar="FILE"
    )
    csv: Path | None = option_field(None, "The rows.", metavar="FILE.csv")
    latex: Path | None = option_field(None, "The rows as a table.", metavar="FILE.tex")
    junit: Path | None = option_field(None, "The rows as tests, for a CI server.", metavar="FILE.xml")
    markdown: Path | None = option_field(
        None, "A summary for GitHub ($GITHUB_STEP_SUMMARY) or GitLab; appended to a file that is there.", metavar="FILE"
    )
    annotations: bool = option_field(False, "Print each failure and each row that fails as an annotation of GitHub.")
    guidelines: bool = option_field(
        False,
        "Of one library, or an archive: which operations take longer than others of it that do the same (Träff, Gropp "
        "& Thakur), what that costs, and the mock-up that is faster.",
    )
    details: bool = option_field(False, DETAILS_HELP)
    as_json: bool = option_field(False, "Print the comparison as one JSON object.", name="json")
    force: bool = option_field(False, FORCE_HELP)

    def __post_init__(self) -> None:
        from lepaute.measure.compare.report import check_name

        if not self.margin > 0:
            raise InputError(f"--margin is {100 * self.margin:g} %; it must be above 0, such as 2%")
        if self.markdown is not None:
            check_output(self.markdown, "--markdown")
        if self.strict and self.fail_if_slower is None:
            raise InputError("--strict is about --fail-if-slower; give that, too")
        for option, path in self._of_one.items():
            if path is not None:
                check_name(path, option)

    @property
    def _of_one(self) -> dict[str, Path | None]:
        return {"--report": self.report, "--plot": self.plot, "--csv": self.csv, "--latex": self.latex}

    def outputs_of(self, all_ranks: Sequence[int] = ()) -> dict[str, Path | tuple[Path, ...] | None]:
        """The files, by option; of campaigns with several numbers of ranks one of each number, NAME-np4.html."""
        every = {
            f"{option} ({ranks} ranks)": _of_ranks(path, ranks)
            for option, path in self._of_one.items()
            for ranks in all_ranks
            if path is not None
        }
        return {
            **(every if len(all_ranks) > 1 else self._of_one),
            "--scaling": files_of(self.scaling),
            "--junit": self.junit,
        }

    def write(self, comparisons: "Sequence[Comparison]") -> None:
        """Writes the files of comparisons of the same libraries, one for each number of ranks."""
        from lepaute.measure.compare.report import write_report, write_scaling

        for comparison in comparisons:
            for path in filter(None, self._of_one.values()):
                target = _of_ranks(path, comparison.ranks) if comparison.all_ranks else path
                write_report(comparison, target)
                note(f"wrote {target}")
        if self.scaling is not None:
            write_scaling(comparisons, self.scaling)
            note(f"wrote {', '.join(map(str, files_of(self.scaling) or ()))}")

    def refuse_outputs(self, what: str) -> None:
        """Raises InputError if an output file was requested; `what`: the message after the option's name."""
        if given := [option for option, path in self.outputs_of().items() if path is not None]:
            raise InputError(f"{given[0]} {what}")

    def check_labels(self, labels: Sequence[str]) -> None:
        """Raises InputError where --left or --right is not among the labels."""
        for option, label in (("--left", self.left), ("--right", self.right)):
            if label is not None and label not in labels:
                raise InputError(f"{option} is {label[:40]!r}; the libraries are called {', '.join(labels)}")

    def compared(
        self, *campaigns: Archive, left: str | None = None, right: str | None = None
    ) -> "tuple[Comparison, ...]":
        """`compare.comparison.by_ranks` with these options; left, right: instead of those of the options."""
        from lepaute.measure.compare.comparison import by_ranks

        return by_ranks(*campaigns, left=left or self.left, right=right or self.right, **self.rule)

    @property
    def rule(self) -> dict[str, Any]:
        """Arguments of a comparison that say how its rows are decided."""
        primary = rows_of(self.primary or ()) or None
        return {"margin": self.margin, "correction": self.correction, "primary": primary}


def _of_ranks(path: Path, ranks: int) -> Path:
    return path.with_name(f"{path.stem}-np{ranks}{path.suffix}")
