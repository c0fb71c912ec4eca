"""Campaigns with the real libraries of Debian, and what goes wrong in them; a few calls of a few cases each."""

import itertools
import json
import os
import signal
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
from long_tests import long_but
from oracles.recorded_hpl import library_named
from support_limits import wait_until
from support_mpi_probes import prefix_of
from support_run import lepaute_argv, run_here

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.archive import Archive
from lepaute.measure.archive.mpi_campaign import calls, facts, mpiruns
from lepaute.measure.comparison import campaign
from lepaute.measure.comparison.measuring import measure_libraries
from lepaute.measure.experiment.workspace import folder_of
from lepaute.measure.sentinel import NodeSentinel

pytestmark = [pytest.mark.machine, pytest.mark.slow]

#: A small budget leaves no time for repetitions of what this machine disturbs; SKaMPI's clocks take little time.
QUICK = {"sizes": "8,1K", "calls": 12, "mpiruns": 2, "budget_s": 0.1, "clock_method": "SKaMPI"}


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    for name in ("openmpi", "mpich"):
        library_named(name)


def test_a_campaign_measures_both_libraries_and_one_of_them_twice(tmp_path: Path) -> None:
    """By names, a label, a compiler wrapper; every case in every mpirun, in another order each time."""
    names = ["openmpi", "mpich", "again=mpicc.mpich"]
    path = measure_libraries(names, tmp_path / "c.zip", **{**QUICK, "ops": "bcast,iallreduce,barrier"})
    archive = Archive.open(path)
    about, runs, rows = facts(archive), mpiruns(archive), calls(archive)
    assert about.labels == ("openmpi", "mpich", "again")
    assert [library.family for library in about.libraries] == ["openmpi", "mpich", "mpich"]
    assert "Open MPI" in about.libraries[0].text
    assert "MPICH" in about.libraries[1].text
    assert all(library.compiler and library.flags and library.mpirun for library in about.libraries)
    measured = runs[~runs["trial"]]
    assert measured.groupby(["block", "library"]).size().eq(2).all()
    assert len(measured) == 6
    assert (about.blocks, about.mpiruns) == (1, 2)
    assert min(about.planned_s, about.spent_s) > 0
    assert (runs["outcome"] == "complete").all()
    assert (runs[["sentinel_before_s", "sentinel_after_s"]] > 0).all(axis=None)
    compared = rows[~rows["trial"] & (rows["operation"] != "none")]
    sizes = compared.groupby(["mpirun", "operation", "form", "size_bytes"]).size()
    assert sizes.eq(12).all()
    assert len(sizes) == 6 * 5
    assert (compared["global_s"] > 0).all()
    assert (compared["local_s"] > 0).all()
    cores = len(os.sched_getaffinity(0))
    assert set(compared["synchronisation"]) == {"round-time" if cores > 1 else "dissemination"}
    orders = {mpirun: tuple(mine.drop_duplicates("batch")["operation"]) for mpirun, mine in compared.groupby("mpirun")}
    assert len(set(orders.values())) == len(orders)
    named = {"pinning", "DVFS level", "cache", "window size", "clock synchronization", "mpirun", "network", "outliers"}
    assert named <= set(about.factors)
    assert all(about.factors.values())
    assert f"compiler and flags: {about.labels[0]}" in about.factors


def test_an_mpirun_beside_a_slow_sentinel_is_disturbed_and_made_again(tmp_path, monkeypatch):
    seconds = (0.02 if number == 6 else 0.01 for number in itertools.count())
    monkeypatch.setattr(NodeSentinel, "watch", lambda _self: next(seconds))
    what = {**QUICK, "ops": "bcast", "mpiruns": 4, "budget_s": 600.0}
    archive = Archive.open(measure_libraries(["mpich"], tmp_path / "c.zip", **what))
    runs = mpiruns(archive)
    beside = runs[runs[["sentinel_before_s", "sentinel_after_s"]].max(axis=1) == 0.02]
    assert len(beside) > 0
    assert beside["causes"].str.contains("sentinels: 100.0 % longer beside it").all()
    assert beside["disturbed"].all()
    first = beside[(beside["block"] >= 0) & (beside["attempt"] == 0)]
    assert set(first["place"]) <= set(runs[runs["attempt"] == 1]["place"])
    assert any("a change of speed" in line for line in archive.about.warnings)


@pytest.mark.long
def test_numbers_are_derived_from_trials_and_first_mpiruns(tmp_path: Path) -> None:
    what = {"ops": "bcast", "sizes": "8,64", "precision": 0.5, "budget_s": 300.0, "clock_method": "SKaMPI"}
    about = facts(Archive.open(measure_libraries(["openmpi", "mpich"], tmp_path / "c.zip", **what)))
    # Two rows take 5 of each library at least.
    assert about.mpiruns >= 5
    assert all(10 <= case.calls <= 500 for case in about.cases)
    assert len(about.derivation) >= 2
    assert any("Stein" in line for line in about.derivation)


def test_a_budget_in_which_nothing_could_be_decided_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    many = {"ops": "bcast,allreduce", "sizes": "1:1K", "budget_s": 1.0, "clock_method": "SKaMPI"}
    with pytest.raises(
        InputError, match="budget is too small: with 23 rows nothing can be decided by fewer than 6 mpiruns"
    ):
        measure_libraries(["openmpi", "mpich"], tmp_path / "c.zip", **many)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_ranks_that_share_cores_are_measured_and_announced(tmp_path: Path) -> None:
    ranks = len(os.sched_getaffinity(0)) + 1
    path = measure_libraries(
        ["openmpi", "mpich"], tmp_path / "c.zip", **{**QUICK, "ops": "barrier", "mpiruns": 1, "ranks": ranks}
    )
    archive = Archive.open(path)
    assert facts(archive).oversubscribed
    assert any(line.startswith(f"{ranks} ranks share") for line in archive.about.warnings)
    rows = calls(archive)
    assert set(rows["synchronisation"]) == {"dissemination"}
    assert facts(archive).factors["pinning"] == "none"


def test_an_mpirun_of_another_library_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    """One that says what it is, and one that says it were the right one, so that only its ranks can tell."""
    honest = prefix_of(tmp_path / "honest", "mpicc.mpich")
    with pytest.raises(EnvironmentProblem, match=r"mpirun belongs to Open MPI, .*mpicc to MPICH") as problem:
        measure_libraries([str(honest)], tmp_path / "c.zip", **QUICK)
    assert "\n" not in str(problem.value)
    silent = prefix_of(tmp_path / "silent", "mpicc.mpich")
    (silent / "bin/mpirun").write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "HYDRA build details: Version: 4.0.2" && exit\n'
        '[ "$1" = -bind-to ] && shift 2\nexec mpirun.openmpi --oversubscribe --allow-run-as-root "$@"\n'
    )
    with pytest.raises(InputError, match=r"starts 2 runs of 1 rank\(s\) instead of one run of 2") as mismatch:
        measure_libraries([str(silent)], tmp_path / "c.zip", **QUICK)
    assert "\n" not in str(mismatch.value)
    assert not folder_of(tmp_path / "c.zip").exists()
    assert not list(tmp_path.glob("*.zip"))


@pytest.mark.long
def test_an_operation_that_a_library_lacks_is_measured_with_the_others(tmp_path: Path) -> None:
    """Its name is missing from the library: the probe is linked all the same, and only calls of it fail."""
    prefix = prefix_of(tmp_path / "lacking", "mpicc.openmpi -DMPI_Scan=MPI_Scan_that_is_missing")
    path = measure_libraries(
        [f"few={prefix}", "mpich"], tmp_path / "c.zip", **{**QUICK, "ops": "scan,bcast", "mpiruns": 1}
    )
    archive = Archive.open(path)
    few, mpich = facts(archive).libraries
    assert list(few.lacking) == ["Scan (blocking)"]
    assert not mpich.lacking
    warning = "few: Scan is not measured with it: exit status 3: probe-collectives: the library has no MPI_Scan_that"
    assert any(line.startswith(warning) for line in archive.about.warnings)
    rows = calls(archive)
    compared = rows[~rows["trial"] & (rows["operation"] != "none")]
    assert set(compared[compared["library"] == "few"]["operation"]) == {"Bcast"}
    assert set(compared[compared["library"] == "mpich"]["operation"]) == {"Bcast", "Scan"}


def test_the_algorithms_that_ran_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI is told to use its sixth algorithm, the binomial tree, and the linker's log has to show that; MPICH
    hides its functions, and only what it is told to use is known."""
    monkeypatch.setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1")
    monkeypatch.setenv("OMPI_MCA_coll_tuned_bcast_algorithm", "6")
    monkeypatch.setenv("MPIR_CVAR_BCAST_INTRA_ALGORITHM", "binomial")
    monkeypatch.setattr(campaign, "build_programs", Mock(side_effect=EnvironmentProblem("there is no BLAS")))
    what = {**QUICK, "ops": "bcast,ibcast,scan,send", "mpiruns": 1}
    archive = Archive.open(measure_libraries(["openmpi", "mpich"], tmp_path / "c.zip", **what))
    # A comparison needs no BLAS; what it cannot see without is said.
    assert mpiruns(archive)["sentinel_after_s"].isna().all()
    assert any(line.endswith("is slow for a while is not seen: there is no BLAS") for line in archive.about.warnings)
    openmpi, mpich = facts(archive).libraries
    demanded = {"Bcast of 8 bytes": "binomial", "Bcast of 1024 bytes": "binomial"}
    hidden = dict.fromkeys([f"{name} of {size} bytes" for name in ("Ibcast", "Send") for size in (8, 1024)], "unknown")
    linear = {"Scan of 8 bytes": "linear", "Scan of 1024 bytes": "linear"}
    assert openmpi.algorithms == {**demanded, **hidden, **linear}
    assert mpich.algorithms == {**demanded, **hidden, **dict.fromkeys(linear, "unknown")}


def test_variables_that_set_a_library_are_recorded_and_those_without_effect_are_named(tmp_path, monkeypatch):
    """One of each library, and one of UCX, which Debian's MPICH uses, is written wrongly; what is to be preloaded is
    not there."""
    monkeypatch.setenv("OMPI_MCA_coll_tuned_bcast_algorithn", "3")
    monkeypatch.setenv("MPIR_CVAR_BCAST_INTRA_ALGORITM", "ring")
    monkeypatch.setenv("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "smp")
    monkeypatch.setenv("UCX_TLSX", "sm")
    monkeypatch.setenv("LD_PRELOAD", "/nowhere/shim.so")
    names = ["openmpi,OMPI_MCA_coll_tuned_use_dynamic_rules=1", "mpich"]
    path = measure_libraries(names, tmp_path / "c.zip", **{**QUICK, "ops": "barrier", "mpiruns": 1})
    archive = Archive.open(path)
    openmpi, mpich = facts(archive).libraries
    preload = {"LD_PRELOAD": "/nowhere/shim.so"}
    wrong = {"OMPI_MCA_coll_tuned_bcast_algorithn": "3"}
    assert openmpi.settings == {**preload, **wrong, "UCX_TLSX": "sm", "OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
    told = facts(archive).factors["variables: mpich"]
    assert told.startswith("LD_PRELOAD=/nowhere/shim.so, MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=smp, MPIR_CVAR_BCAST")
    said = [line for line in archive.about.warnings if "no effect" in line or "not loaded" in line]
    version = openmpi.version
    assert said == [
        "openmpi: /nowhere/shim.so of LD_PRELOAD is not loaded: cannot open shared object file",
        f"openmpi: Open MPI {version} knows no OMPI_MCA_coll_tuned_bcast_algorithn, which has no effect; is "
        "OMPI_MCA_coll_tuned_bcast_algorithm meant?",
        "mpich: /nowhere/shim.so of LD_PRELOAD is not loaded: cannot open shared object file",
        "mpich: UCX knows no UCX_TLSX, which has no effect",
        f"mpich: MPICH {mpich.version} knows no MPIR_CVAR_BCAST_INTRA_ALGORITM, which has no effect; is "
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM meant?",
    ]


@pytest.mark.parametrize("varied", long_but(["cache pages", "cache pages flags"], "cache pages"))
def test_factors_are_crossed_with_libraries_and_reach_the_probe(varied, tmp_path, json_of):
    """Every combination of levels in one block; what the probe was told is in its raw files."""
    names = varied.split()
    levels_of = {"cache": ("warm", "cold"), "pages": ("small", "default"), "flags": ("-O2", "-O1")}
    factors = [word for name in names for word in ("--factor", f"{name}={','.join(levels_of[name])}")]
    words = ["--ops", "barrier", "--calls", "25", "--mpiruns", "1", "--budget", "0.1"]
    more = ["--clock-method", "SKaMPI", "--json", "-o", str(tmp_path / "c.zip")]
    found = json_of("compare", "mpich", "again=mpich", *words, *factors, *more)
    assert {(one["factor"], one["reference"], one["level"]) for one in found["effects"]} == {
        (name, *levels_of[name]) for name in names
    }
    assert len(found["effects"]) == len(names) * 2
    archive = Archive.open(tmp_path / "c.zip")
    runs = mpiruns(archive)
    measured = runs[~runs["trial"]]
    assert len(set(zip(measured["library"], measured["levels"], strict=True))) == len(measured) == 2 * 2 ** len(names)
    assert set(measured["block"]) == {0}
    assert facts(archive).factors["cache"] == "varied: warm, cold"
    for run in measured.itertuples():
        levels, raw = json.loads(run.levels), archive.read_bytes(f"raw/mpirun{run.mpirun:04d}.r0.csv").decode()
        assert f"--pages {levels['pages']}" in raw
        assert ("--cold-bytes 0 " in raw) == (levels["cache"] == "warm")


def test_a_frequency_that_cannot_be_set_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    if Path("/sys/devices/system/cpu/cpufreq/policy0").exists():
        pytest.skip("this machine has frequencies")
    with pytest.raises(EnvironmentProblem, match="--factor frequency: performance cannot be set: ") as problem:
        measure_libraries(["openmpi"], tmp_path / "c.zip", **QUICK, factors=["frequency=performance,powersave"])
    assert "\n" not in str(problem.value)
    assert list(tmp_path.iterdir()) == []


def test_operations_beyond_collective_ones_are_measured_with_both_libraries(tmp_path, output_of):
    ops = (
        "reduce_scatter,ialltoallw,allreduce_init,gather_in_place,neighbor_alltoall,put,accumulate,bandwidth,iallreduce"
    )
    words = ["--ops", ops, "--sizes", "0,64", "--root", "1", "--datatype", "int", "--op", "max", "--compute", "50us"]
    numbers = ["--calls", "6", "--mpiruns", "1", "--budget", "0.1", "--clock-method", "SKaMPI"]
    said = output_of("compare", "openmpi", "mpich", *words, *numbers, "--details", "-o", tmp_path / "c.zip")
    archive = Archive.open(tmp_path / "c.zip")
    about, rows = facts(archive), calls(archive)
    assert not any(library.lacking for library in about.libraries)
    compared = rows[~rows["trial"] & (rows["operation"] != "none")]
    assert compared.groupby(["library", "operation", "form", "size_bytes"]).size().eq(6).all()
    overlapped = compared[compared["form"] == "overlapped"]
    assert set(overlapped["operation"]) == {"Allreduce", "Alltoallw"}
    assert (overlapped["global_s"] >= 50e-6).all()
    assert {case.reduction for case in about.cases if case.operation == "Accumulate"} == {"MPI_MAX of MPI_INT"}
    assert (about.factors["root"], about.factors["reductions"]) == ("rank 1", "MPI_MAX of MPI_INT")
    assert "Bandwidth of 64 B, each pair: openmpi " in said
    assert "Iallreduce of 64 B overlaps with 50 µs of work: openmpi " in said


@pytest.mark.long
def test_a_library_of_an_environment_module_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real command: Debian's environment-modules."""
    known = subprocess.run(["bash", "-lc", "type module"], capture_output=True, check=False)
    if known.returncode != 0:
        pytest.skip("a login shell has no module command here (apt-get install environment-modules)")
    prefix = prefix_of(tmp_path / "prefix", "mpicc.mpich", launch="mpirun.mpich")
    modules = tmp_path / "modules" / "mympi"
    modules.mkdir(parents=True)
    (modules / "1.0").write_text(f"#%Module1.0\nprepend-path PATH {prefix}/bin\nsetenv MY_MPI {prefix}\n")
    monkeypatch.setenv("MODULEPATH", str(modules.parent))
    path = measure_libraries(["module:mympi/1.0"], tmp_path / "c.zip", **{**QUICK, "ops": "barrier", "mpiruns": 1})
    (library,) = facts(Archive.open(path)).libraries
    assert (library.label, library.spec, library.family) == ("mympi-1.0", "module:mympi/1.0", "mpich")
    assert library.mpicc == str(prefix / "bin/mpicc")
    assert library.variables["MY_MPI"] == str(prefix)


#: More calls of MPI_Scan than a trial has; what is done once is done by the rank that removes a file.
_ONCE = """
static int calls;
int MPI_Scan(const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c) {{
    if (++calls > 60 && unlink("{flag}") == 0) {{ {do} }}
    return PMPI_Scan(s, r, n, t, o, c);
}}
"""
_MANY = {**QUICK, "ops": "scan", "sizes": "8", "calls": 200, "mpiruns": 1}


@pytest.mark.parametrize(
    ("library", "what", "limit_s", "message"),
    [
        ("openmpi", "raise(SIGKILL);", None, "signal 9"),
        pytest.param("mpich", "sleep(600);", 60.0, "did not end within 60 s and was ended", marks=pytest.mark.long),
    ],
)
def test_an_mpirun_with_a_dead_or_a_stuck_rank_is_kept_and_made_again(tmp_path, library, what, limit_s, message):
    flag = tmp_path / "once"
    shim = _ONCE.format(flag=flag, do=what)
    prefix = prefix_of(tmp_path / "shim", f"mpicc.{library}", f"mpirun.{library}", shim=shim)
    flag.touch()
    path = measure_libraries([f"odd={prefix}"], tmp_path / "c.zip", **_MANY, limit_s=limit_s)
    archive = Archive.open(path)
    runs = mpiruns(archive)
    made = runs[runs["block"] == 0]
    assert made["outcome"].tolist() == ["failed", "complete"]
    assert message in made["failure"].iloc[0]
    (warning,) = (line for line in archive.about.warnings if line.startswith("odd: mpirun 1 failed and is kept"))
    assert "\n" not in warning
    rows = calls(archive)
    assert rows[rows["failed"]]["mpirun"].eq(1).all()
    assert len(rows[(rows["mpirun"] == 2) & (rows["operation"] == "Scan")]) == 200


@pytest.mark.slow
@pytest.mark.long
def test_a_library_whose_ranks_always_die_ends_the_campaign_and_the_archive_is_whole(tmp_path: Path) -> None:
    flag = tmp_path / "never" / "there"
    always = _ONCE.format(flag=flag, do="").replace(f'unlink("{flag}") == 0', "raise(SIGKILL) == 0")
    prefix = prefix_of(tmp_path / "shim", "mpicc.mpich", "mpirun.mpich", shim=always)
    with pytest.raises(EnvironmentProblem, match="odd: one mpirun after the other failed") as problem:
        measure_libraries([f"odd={prefix}"], tmp_path / "c.zip", **{**_MANY, "mpiruns": 3})
    assert "c.partial.zip" in "".join(problem.value.__notes__)
    runs = mpiruns(Archive.open(tmp_path / "c.partial.zip"))
    assert runs[runs["block"] >= 0].groupby("place").size().eq(3).all()


def _words(folder: Path, *more: str) -> list[str]:
    words = ("compare", "mpich", "again=mpich", "--ops", "bcast", "--sizes", "8", "--calls", "20", "--budget", "0.1")
    numbers = ("--mpiruns", "3", "--clock-method", "SKaMPI", "-o", str(folder / "c.zip"))
    return [*words, *numbers, *more]


def test_a_campaign_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    process = subprocess.Popen(lepaute_argv(*_words(tmp_path)), stderr=subprocess.PIPE, text=True)
    journal = folder_of(tmp_path / "c.zip") / "mpiruns_begun.jsonl"
    wait_until(
        lambda: (journal.is_file() and journal.read_text().count("\n") >= 5) or process.poll() is not None,
        "the fifth mpirun",
    )
    assert process.poll() is None, process.communicate()[1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    ended = (folder_of(tmp_path / "c.zip") / "mpiruns.jsonl").read_text().count("\n")
    done = run_here(*_words(tmp_path, "--resume"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    archive = Archive.open(tmp_path / "c.zip")
    runs = mpiruns(archive)
    assert len(archive.metadata["sessions"]) == 2
    complete = runs[(runs["block"] >= 0) & (runs["outcome"] == "complete")]
    assert complete.groupby(["block", "library"]).size().eq(3).all()
    assert len(complete) == 6
    # What had ended was not made again, and what was running is kept as interrupted.
    assert len(runs) <= ended + 1 + (8 - ended)
    assert runs["outcome"].isin(["complete", "interrupted"]).all()
    assert not calls(archive).empty


@pytest.mark.slow
@pytest.mark.long
def test_sessions_are_an_archive_each_and_go_on_after_a_kill(tmp_path: Path) -> None:
    """Killed in the second one; the first stays as it is, and both are compared."""
    words = _words(tmp_path, "--sessions", "2", "--every", "5s")
    process = subprocess.Popen(lepaute_argv(*words), stderr=subprocess.PIPE, text=True)
    journal = folder_of(tmp_path / "c-2.zip") / "mpiruns_begun.jsonl"
    wait_until(lambda: journal.is_file() or process.poll() is not None, "the second session")
    assert process.poll() is None, process.communicate()[1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    first = Archive.open(tmp_path / "c-1.zip")
    done = run_here(*words, "--resume", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    both = [Archive.open(tmp_path / f"c-{number}.zip") for number in (1, 2)]
    assert (both[0].id, [one.about.seed for one in both]) == (first.id, [1, 2])
    assert len(both[1].metadata["sessions"]) == 2
    # The latter if something else ran on this machine all the time.
    said = ("not tested: 2 sessions, and 3 are needed", "12 of 12 mpiruns were disturbed")
    assert any(text in done.stdout for text in said), done.stdout
    assert f"{tmp_path}/c-2.zip: archive {both[1].id[:12]}" in done.stderr


def test_wrong_words_are_one_line_and_status_2(tmp_path, refusal_of):
    for more, message in (
        (("--resume",), "no interrupted run is there"),
        (("--resume", "--sessions", "3"), "c-1.zip: no session is there; start without --resume"),
        (("--sessions", "3", "--every", "0.05s"), "--every is 0.05 s; give at least the budget of a session, 0.1 s"),
        (("--np", "1"), "--np is 1"),
        (("other=openmpi", "other=mpich"), "2 libraries are called other"),
    ):
        assert message in refusal_of(*_words(tmp_path, *more))
    assert not list(tmp_path.iterdir())
