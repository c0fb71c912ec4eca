"""What scripts that measure this machine share: commands of lepaute, quiet predictions, campaigns of HPL."""

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lepaute as lp
from lepaute.kit.command import run_command
from lepaute.measure.archive import Archive
from lepaute.measure.calibration.campaign import calibrate
from lepaute.measure.fit import platform_and_models
from lepaute.measure.verify.campaign import Plan
from lepaute.measure.verify.real_run import build_program, check_machine
from lepaute.measure.verify.seal import JOURNAL_FILE
from lepaute.measure.verify.verification import Verification, chosen_runs, verify
from support.report import say

#: The words that run the command line.
LEPAUTE = (sys.executable, "-m", "lepaute.cli.main")


#: By which mpirun of Open MPI runs for root, too.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
#: SMPI's way with its factors of flows, in which the core takes the very times of messages.
SCALED = {"network.flow_factor": "scale"}


def emulated_s(program: Sequence[str], ranks: int, trace: Path, *options: str, folder: Path | None = None) -> float:
    """Seconds of an emulation, which is traced: dahu-2020-01 and SCALED, no uncertainty, Open MPI's rules."""
    argv = [
        *(*LEPAUTE, "emulate", "program", "-p", "dahu-2020-01", "--set", "network.flow_factor=scale"),
        *("--np", str(ranks), "--runs", "1", "--without", "all", "--collectives", "openmpi", *options),
        *("--json", "--trace", str(trace), "--force", "--", *program),
    ]
    done = run_command(argv, what="the emulation", timeout_s=900.0, folder=folder)
    return float(json.loads(done.stdout)["time_s"]["mean"])


def tell(what: str, share: float) -> None:
    say(f"{100.0 * share:3.0f} %  {what}")


def quietly(what: Any, platform: lp.Platform | str, **how: Any) -> lp.Prediction:
    """A prediction without the warnings about what a script does on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.PredictionWarning)
        return lp.predict(what, platform, **how)


def kernels_of(platform: lp.Platform) -> dict[str, str]:
    """The variable by which OpenBLAS takes the kernels of the calibration."""
    coretype = platform.blas.coretype_env if platform.blas is not None else None
    return {} if coretype is None else {"OPENBLAS_CORETYPE": coretype}


def calibrated(folder: Path, name: str, block_sizes: Sequence[int], *, quick: bool) -> lp.Platform:
    """The platform of this machine, measured now, in platform.yaml of a folder."""
    archive = calibrate(folder / "calibration.zip", nbs=block_sizes, quick=quick, seed=1, progress=tell)
    platform, _ = platform_and_models(Archive.open(archive), name)
    platform.to_yaml(folder / "platform.yaml")
    return platform


def campaign(cases: Sequence[lp.Hpl], platform: lp.Platform, runs: int, repeats: int, folder: Path) -> Verification:
    """Predictions of HPL with so many runs, sealed, then so many real runs of each; resumed where it was begun."""
    for case in cases:
        check_machine(case)
    folder.mkdir(parents=True, exist_ok=True)
    program, plan = build_program(print), Plan(repeats=repeats, order_seed=1)
    begun = chosen_runs(
        *(cases, program, plan, lambda case: lp.predict(case, platform, runs=runs, seed=1)),
        *(folder, program, tell),
        sealed=lambda seal, finished: print(f"sealed: {seal.sha256} at {seal.created}, {finished} runs known"),
        resume=(folder / JOURNAL_FILE).is_file(),
    )
    return verify(begun)
