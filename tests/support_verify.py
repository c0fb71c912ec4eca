"""Predictions and real runs of campaigns that never ran."""

from pathlib import Path

from lepaute.measure.machine_load import Load
from lepaute.measure.verify.real_run import HplProgram, RankLoad, RealRun
from lepaute.simulate import Hpl, Prediction, Run
from lepaute.simulate.prediction.prediction import SimulationFigures

#: Any file stands for the program: only its checksum is taken.
PROGRAM = HplProgram(Path(__file__), is_driver=True)


def predicted(hpl: Hpl, times_s: "list[float] | tuple[float, ...]" = (0.99, 1.0, 1.01)) -> Prediction:
    """Its simulated runs took these times."""
    runs = tuple(Run(1 + i, time_s, hpl.rate_gflops(time_s)) for i, time_s in enumerate(times_s))
    figures = SimulationFigures(wall_s=0.1, peak_rss_bytes=1, engine_bytes=1, messages=0)
    return Prediction(hpl, "test", "0" * 64, 1, runs, "full", (), figures, {}, "0")


def measured(time_s: float, cpu_share: float = 1.0) -> RealRun:
    """Of one rank; a share of the CPU below 1 is a disturbance."""
    rank = RankLoad(0, 0, time_s, cpu_share * time_s, 0, 0)
    return RealRun(time_s, (rank,), Load(wall_s=time_s + 0.4, cores=2, own_cpu_s=time_s, others_cpu_s=0, steal_s=0))


def silent(_what: str, _share: float) -> None:
    """Of the progress of a campaign nothing is shown."""
