"""Recordings of the real HPL, replayed, against the native simulation of the same HPL on the same platform.

Fixed before any result was looked at:

* PLATFORM: that of this machine, as validation/real_programs.py or `lepaute calibrate` leaves it;
* cases: N = 2000 and 4000, NB = 128, on 1 x 2 and 2 x 1 ranks, depth 0 and 1; all else as `lepaute predict hpl` has it;
* recording: `lepaute record` of the HPL that is built here, on two cores, the part that HPL times;
* both sides without layers of uncertainty, one run; the replay with --recorded-on the same platform: kernels take the
  time of the platform's models, all else what it took;
* statistic: difference = time replayed / time of the native simulation - 1;
* goal: at most 1 % without look-ahead. With it a replay sends and computes in the order of the recorded run, which the
  simulation decides anew: told, not judged.
"""

from pathlib import Path
from typing import Any

import pandas
from support.real_runs import AS_ROOT, LEPAUTE, kernels_of, quietly
from support.report import ROOT, Goal, Options, at_most, run_study, say

import lepaute as lp
from lepaute.errors import LepauteError
from lepaute.kit.command import run_command
from lepaute.measure.verify.real_run import hpl_input_text

STUDY = "recorded_hpl"
WORK = ROOT / "build" / STUDY
ORDERS, GRIDS, DEPTHS, NB = (2000, 4000), ((1, 2), (2, 1)), (0, 1), 128
LIMIT_PERCENT = 1.0
TEXT = """## HPL's own recordings, replayed

    .venv/bin/python validation/recorded_hpl.py -p PLATFORM

The real HPL, recorded on two cores here and replayed on the platform of this machine, against the native simulation of
the same HPL on it, neither with any uncertainty. Difference: replayed / native − 1.

{goals}

{cases}
"""
OWN = {"-p --platform": {"type": Path, "help": "platform file of this machine"}}


def compared(options: Options) -> pandas.DataFrame:
    if options.own.platform is None:
        raise LepauteError("give the platform of this machine with -p")
    WORK.mkdir(parents=True, exist_ok=True)
    cases = [lp.Hpl(n=n, nb=NB, p=p, q=q, depth=depth) for n in ORDERS for p, q in GRIDS for depth in DEPTHS]
    platform = options.own.platform.resolve()
    return pandas.DataFrame([row_of(hpl, platform) for hpl in (cases[:2] if options.quick else cases)])


def recorded(hpl: lp.Hpl, environment: dict[str, str]) -> Path:
    """The trace of a real run."""
    path = WORK / f"{hpl.n}-{hpl.p}x{hpl.q}-{hpl.depth}.parquet"
    (WORK / "HPL.dat").write_text(hpl_input_text(hpl, to_stdout=False))
    argv = [*LEPAUTE, "record", "--force", "-o", str(path), "--dat", str(WORK / "HPL.dat")]
    argv += ["--", "mpirun", "--bind-to", "core", "-np", str(hpl.ranks), "xhpl-lepaute"]
    run_command(argv, what=path.stem, timeout_s=600.0, environment=AS_ROOT | environment)
    return path


def row_of(hpl: lp.Hpl, path: Path) -> dict[str, Any]:
    """One case: recorded, replayed, simulated."""
    platform = lp.load_platform(path)
    recording = recorded(hpl, {"OPENBLAS_NUM_THREADS": "1", **kernels_of(platform)})
    replay = lp.TraceReplay(recording, recorded_on=str(path))
    replayed, native = (quietly(each, platform, runs=1, layers=lp.Layers.only()) for each in (replay, hpl))
    own = next((kernel for name, kernel in replayed.first.kernels.items() if name == "computing"), None)
    row = {name: getattr(hpl, name) for name in ("n", "p", "q", "depth")} | {
        "recorded_s": float(max(lp.read_trace(recording).metadata["ends_s"])),
        "replayed_s": replayed.time_s.mean,
        "native_s": native.time_s.mean,
        "own_code_percent": 0.0 if own is None else 100.0 * own.time_s / (hpl.ranks * replayed.time_s.mean),
        "difference_percent": 100.0 * (replayed.time_s.mean / native.time_s.mean - 1.0),
    }
    say(*row.values(), sep=", ")
    return row


def judged(frame: pandas.DataFrame) -> list[Goal]:
    plain = frame[frame["depth"] == 0]["difference_percent"].abs()
    return [at_most("largest absolute difference, without look-ahead", LIMIT_PERCENT, plain.max())]


if __name__ == "__main__":
    run_study(compared, judged, TEXT, own=OWN)
