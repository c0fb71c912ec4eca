"""A calibration: chooses the kernels, builds the probes, runs the plan, and archives what was seen."""

import io
import json
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.archive import ArchiveWriter
from lepaute.command import CommandRecord
from lepaute.design import write_design
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.environment import collect_environment, cpu_model, first_line, memory_bytes
from lepaute.measure.kernel_set import KernelSet, choose_kernel_set
from lepaute.measure.machine_load import Load, load_between, sample
from lepaute.measure.plan import DGEMM, FULL, NB, P2P, QUICK, STEPS_SIDE_BY_SIDE, PlannedRun, Scale, largest_n, plan
from lepaute.measure.probes import Probes, build_probes, run_probe_dgemm, run_probe_p2p, run_probe_steps
from lepaute.version import __version__

if TYPE_CHECKING:
    import pandas

#: Called with what is being done and the share of the work that is behind, from 0 to 1.
Progress = Callable[[str, float], None]

#: A probe takes a few seconds; one that takes this long hangs.
_PROBE_LIMIT_S = 180.0
#: Repetitions of a run that other load disturbed, at the end of its block: load that stays cannot be outlived.
MOST_REPETITIONS = 2
#: All repetitions of a campaign together last no longer: a fifth of a full calibration. One is not begun when it would
#: go beyond if it took as long as the last attempt.
MOST_REPETITION_S = 20.0
#: Share of the progress bar for what comes before the first probe.
_PREPARED = 0.05


@dataclass(frozen=True, slots=True)
class RawFile:
    """What one rank of one probe wrote, the broken last line of an interrupted probe left out.

    attempt  : 0, or more for a repetition of a disturbed run
    disturbed: other load was there meanwhile
    """

    run: PlannedRun
    member: str
    text: str
    attempt: int = 0
    disturbed: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One fresh process of a planned run; wall_s: how long it took."""

    run: PlannedRun
    number: int
    wall_s: float
    disturbed: bool


@dataclass(slots=True)
class Seen:
    """Everything collected so far; what is archived when the campaign ends, well or not."""

    raw: list[RawFile] = field(default_factory=list)
    commands: list[CommandRecord] = field(default_factory=list)
    blocks: list[dict[str, object]] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)


def calibrate(
    out_archive: str | Path,
    *,
    quick: bool = False,
    seed: int = 1,
    progress: Progress | None = None,
) -> Path:
    """Measures this machine and writes the archive; returns its path.

    quick   : two small blocks, to see that all works; too little for a model to trust
    seed    : of the designs, of their order and of the probes' data
    progress: is told what is done and how much of the work is behind
    Raises EnvironmentProblem when something the probes need is missing or a probe fails, InputError for a
    seed that no generator takes. After a failure or Ctrl-C what was measured by then is archived beside as
    NAME.partial.zip, its metadata marked `partial`, the exception has a note that says so, and an older
    archive of the same name stays as it was.
    """
    out_archive = Path(out_archive)
    tell = progress if progress is not None else _silent
    scale = QUICK if quick else FULL
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; give an integer from 0 to 2^63 - 1")
    check_target(out_archive)
    cores = _two_cores()
    tell("choosing the BLAS kernels", 0.0)
    kernel_set = choose_kernel_set()
    tell("building the probes", 0.01)
    probes = build_probes(progress=lambda message: tell(message, 0.01))
    most_n = largest_n(scale, memory_bytes())
    runs = plan(scale, seed, cores, most_n)
    metadata = _metadata(scale, seed, cores, kernel_set, most_n, quick)
    seen = Seen()
    with tempfile.TemporaryDirectory(prefix="lepaute-calibration-") as folder:
        try:
            _run_all(runs, probes, kernel_set, Path(folder), seen, tell)
        except BaseException as problem:
            if seen.raw:
                partial = out_archive.with_name(f"{out_archive.stem}.partial.zip")
                cause = str(problem) or type(problem).__name__
                _write(partial, {**metadata, "partial": True, "partial_cause": cause}, runs, seen)
                problem.add_note(f"what was measured until then is in {partial}")
            raise
    tell("writing the archive", 0.99)
    _write(out_archive, metadata, runs, seen)
    tell("done", 1.0)
    return out_archive


def _silent(_message: str, _share: float) -> None:
    """The progress that nobody watches."""


def check_target(path: Path) -> None:
    """Refuses a place that cannot be written now, not after two minutes of measuring."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file")
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise InputError(f"{path}: its folder does not exist or cannot be written; choose another place")


def _two_cores() -> tuple[int, int]:
    """The first two cores that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise EnvironmentProblem(
            f"calibration needs two cores and may use {len(allowed)}; "
            "widen the affinity (taskset) or use another machine"
        )
    return allowed[0], allowed[1]


def _metadata(
    scale: Scale, seed: int, cores: tuple[int, int], kernel_set: KernelSet, most_n: int, quick: bool
) -> dict[str, Any]:
    warnings = list(kernel_set.warnings)
    if most_n < scale.most_n:
        warnings.append(f"measured matrices up to N = {most_n} only: this machine has too little memory for more")
    return {
        "kind": "calibration",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "lepaute_version": __version__,
        "seed": seed,
        "quick": quick,
        "host": platform.node(),
        "cores": list(cores),
        "node_cores": os.cpu_count(),
        "blas": {
            "library": "openblas",
            "core": kernel_set.core_name,
            "config": kernel_set.config,
            "coretype_env": kernel_set.coretype_env,
            "dgemm_gflops": kernel_set.gflops,
        },
        "mpi": {"version": first_line(("mpirun", "--version"))},
        "cpu_model": cpu_model(),
        "memory_bytes": memory_bytes(),
        "blocks": scale.blocks,
        "nb": NB,
        "most_n": most_n,
        "partial": False,
        "warnings": warnings,
    }


def _run_all(
    runs: list[PlannedRun],
    probes: Probes,
    kernel_set: KernelSet,
    folder: Path,
    seen: Seen,
    tell: Progress,
) -> None:
    """Runs the plan, and what was disturbed again at the end of its block.

    `seen` grows as it goes, so that it holds what there is whenever this ends.
    """
    blocks = runs[-1].block + 1
    for number, run in enumerate(runs):
        share = _PREPARED + (0.98 - _PREPARED) * number / len(runs)
        tell(f"block {run.block + 1} of {blocks}: {run.name}", share)
        _attempt(run, 0, probes, kernel_set, folder, seen)
        if number + 1 < len(runs) and runs[number + 1].block == run.block:
            continue
        share = _PREPARED + (0.98 - _PREPARED) * (number + 1) / len(runs)
        while (again := next_repetition(seen.attempts, run.block)) is not None:
            tell(f"block {run.block + 1} of {blocks}: {again.run.name} again, it was disturbed", share)
            _attempt(again.run, again.number + 1, probes, kernel_set, folder, seen)


def next_repetition(attempts: Sequence[Attempt], block: int) -> Attempt | None:
    """The last attempt of the run of `block` that is to be repeated next; None when no repetition is due or allowed.

    attempts: all of the campaign so far. Due are runs without an undisturbed attempt, those with the fewest attempts
    first, in the order in which they ran; a run that no longer fits into MOST_REPETITION_S is passed over.
    """
    spent_s = sum(attempt.wall_s for attempt in attempts if attempt.number > 0)
    last = {attempt.run.name: attempt for attempt in attempts if attempt.run.block == block}
    due = [
        attempt
        for attempt in last.values()
        if attempt.disturbed and attempt.number < MOST_REPETITIONS and spent_s + attempt.wall_s <= MOST_REPETITION_S
    ]
    return min(due, key=lambda attempt: attempt.number, default=None)


def _attempt(run: PlannedRun, attempt: int, probes: Probes, kernel_set: KernelSet, folder: Path, seen: Seen) -> None:
    """Runs one probe once, in a fresh process, and adds all that there is of it to `seen`."""
    number = len(seen.attempts)
    place = folder / str(number)
    place.mkdir()
    design = place / "design.csv"
    write_design(run.design, design)
    raw = place / "raw.csv"
    before = sample()
    try:
        command = _run(run, probes, design, raw, kernel_set.coretype_env)
    finally:
        load = load_between(before, sample(), os.cpu_count() or 1)
        disturbed = bool(load.disturbances())
        files = _collect(run, attempt, disturbed, raw)
        seen.raw.extend(files)
    seen.commands.append(command)
    seen.attempts.append(Attempt(run, attempt, load.wall_s, disturbed))
    seen.blocks.append(_block_record(number, run, attempt, command.start, before.monotonic_s, load))
    _check_kernels(files, run, kernel_set)


def _run(run: PlannedRun, probes: Probes, design: Path, raw: Path, coretype: str | None) -> CommandRecord:
    """Runs one probe to its end; raises EnvironmentProblem when it fails or hangs."""
    if run.probe == DGEMM:
        return run_probe_dgemm(
            probes, design, raw, cpu=run.cores[0], seed=run.seed, coretype=coretype, timeout_s=_PROBE_LIMIT_S
        ).command
    if run.probe == P2P:
        return run_probe_p2p(probes, design, raw, cpus=run.cores, seed=run.seed, timeout_s=_PROBE_LIMIT_S).command
    options = ("--grid", "single") if run.probe == STEPS_SIDE_BY_SIDE else ()
    return run_probe_steps(
        probes, design, raw, cpus=run.cores, seed=run.seed, options=options, coretype=coretype, timeout_s=_PROBE_LIMIT_S
    ).command


def _collect(run: PlannedRun, attempt: int, disturbed: bool, raw: Path) -> list[RawFile]:
    """The raw files that an attempt has left, one a rank."""
    found = []
    stem = f"raw/block{run.block}/{run.name}" + (f".attempt{attempt}" if attempt else "")
    for path in sorted(raw.parent.glob(f"{raw.name}*")):
        text = path.read_text(errors="replace")
        text = text[: text.rfind("\n") + 1]
        rank = path.name.removeprefix(raw.name)  # "" or ".r0", ".r1"
        if any(not line.startswith("#") for line in text.splitlines()):
            found.append(RawFile(run, f"{stem}{rank}.csv", text, attempt, disturbed))
    return found


def _block_record(
    number: int, run: PlannedRun, attempt: int, started: str, start_s: float, load: Load
) -> dict[str, object]:
    causes = load.disturbances()
    return {
        "order": number,
        "block": run.block,
        "name": run.name,
        "attempt": attempt,
        "probe": run.probe,
        "run_cores": list(run.cores),
        "seed": run.seed,
        "start": started,
        "start_s": start_s,
        **asdict(load),
        "disturbed": bool(causes),
        "causes": list(causes),
    }


def _check_kernels(files: list[RawFile], run: PlannedRun, kernel_set: KernelSet) -> None:
    """The probe ran the kernels that were chosen: a model of others would be worthless."""
    if not files:
        raise EnvironmentProblem(f"probe {run.name} wrote no rows; see lepaute doctor")
    for file in files:
        core = header_of_raw(file.text).get("blas_core", "none")
        if core not in ("none", kernel_set.core_name):
            raise EnvironmentProblem(
                f"probe {run.name} ran the {core} kernels of OpenBLAS instead of {kernel_set.core_name}: "
                "two copies of OpenBLAS are installed? See lepaute doctor"
            )


def header_of_raw(text: str) -> dict[str, str]:
    """The `#@key=value` lines at the head of a raw file."""
    header = {}
    for line in text.splitlines():
        if not line.startswith("#@"):
            break
        key, _, value = line[2:].partition("=")
        header[key] = value
    return header


def observations(raw: list[RawFile], host: str) -> "pandas.DataFrame":
    """All rows of raw files of one kind (kernels or p2p) as one table.

    Added columns: block, attempt, disturbed (of the attempt), host, clock_cost_s, and for kernels probe.
    """
    import pandas

    frames = []
    for file in raw:
        frame = pandas.read_csv(io.StringIO(file.text), comment="#")
        frame["block"] = file.run.block
        frame["attempt"] = file.attempt
        frame["disturbed"] = file.disturbed
        frame["host"] = host
        if file.run.probe != P2P:
            frame["probe"] = file.run.probe
        frame["clock_cost_s"] = float(header_of_raw(file.text).get("clock_cost_s", "0"))
        frames.append(frame)
    return pandas.concat(frames, ignore_index=True)


def disturbance_warning(attempts: Sequence[Attempt]) -> str | None:
    """How many runs were disturbed at first, how many of them repeated, how many have no undisturbed attempt."""
    runs = {(attempt.run.block, attempt.run.name) for attempt in attempts}
    disturbed = [attempt for attempt in attempts if attempt.number == 0 and attempt.disturbed]
    if not disturbed:
        return None
    repeated = sum(attempt.number == 1 for attempt in attempts)
    remaining = len(disturbed) - sum(attempt.number > 0 and not attempt.disturbed for attempt in attempts)
    return (
        f"{len(disturbed)} of {len(runs)} probe runs were disturbed by other load (blocks.json): "
        f"{repeated} repeated, {remaining} without an undisturbed attempt"
    )


def _write(path: Path, metadata: dict[str, Any], runs: list[PlannedRun], seen: Seen) -> None:
    """Closes what was seen into an archive."""
    if warning := disturbance_warning(seen.attempts):
        metadata = {**metadata, "warnings": [*metadata["warnings"], warning]}
    with ArchiveWriter(path, metadata) as archive:
        for run in runs:
            archive.add_bytes(f"designs/block{run.block}_{run.name}.csv", run.design.to_csv().encode())
        for file in seen.raw:
            archive.add_bytes(file.member, file.text.encode())
        for name, content in collect_environment().items():
            archive.add_bytes(f"environment/{name}", content)
        archive.add_bytes("blocks.json", json.dumps(seen.blocks, indent=1).encode() + b"\n")
        kernels = [file for file in seen.raw if file.run.probe != P2P]
        messages = [file for file in seen.raw if file.run.probe == P2P]
        for name, files in (("kernels", kernels), ("p2p", messages)):
            if files:
                archive.add_table(f"observations/{name}.parquet", observations(files, metadata["host"]))
        for command in seen.commands:
            archive.add_command(
                command.argv, command.returncode, command.stdout, command.stderr, command.start, command.duration_s
            )
