"""Episodes that no counter shows: what leaving them out, and a slow state, do to the intervals of further runs.

Simulated truth, fixed before the first full result. A core's speed wanders (11 %, correlation time 0.3 s), blocks and
launches differ by 0.5 %, processes by 1 %, steps by 0.5 % (standard deviations of the logarithm). Now and then all
cores take 1.7 times as long: gaps exponential, lengths uniform in 0.5 to 1.5 times their mean. A calibration has seven
blocks of three launches of nine steps of 0.02 to 0.6 s, on one core or both, and a sentinel of half a second around
each launch. Treatments, of the same machine and seed: `as before`, all steps; `left out`, without slow steps
(`fit.variability.episodes`); `repeated`, a launch with a slow step is made again once and replaced, then the same;
`lepaute`, it is added instead, and the slow state of first attempts widens the interval of any run; `oracle`, the law.
Of each interval of 95 %, for `undisturbed` runs of one rank and for `any`: share of 400 runs inside, median half-width,
mean interval score (Gneiting and Raftery 2007). Constants were fixed by such simulations of other seeds; chosen after
an archive had been fitted: steps beside an episode, the square of a stretch's level, priors of what lasts.

Messages: a start of mpirun a block, MESSAGES on two ranks in about a second, sizes log-uniform up to 64 MiB; they
scatter by 8 % (half-normal, both ranks) and 3 %, starts by 3 %. NETWORKS have in addition: `tails`, 3 % of messages ten
times as long; `late`, 15 % three times; `modes`, 1.4 times for 0.2 s of each second on average; `slow starts`, one of
five 1.5 times; `slow beginnings`, 0.3 s of one of five. The rule of steps is applied to all archives, and as by the
package to those with an episode in steps or sentinels: how many archives lack messages, what share of the slow messages
and of the others that is, and how far the mean of what stays is from that of the undisturbed machine.
"""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas
from support.report import Goal, Options, at_most, close, markdown, options_of, run_main

from lepaute.measure.fit.variability.episodes import Episodes, Parts, episodes_of_parts, slow_messages
from lepaute.measure.fit.variability.sentinels import Watch
from lepaute.simulate.slow_state import SlowNodes
from lepaute.stats.time_scale import LastingEffect, StepSeries, TimeScale, fit_time_scale

STUDY = "episodes"
Floats = npt.NDArray[np.float64]
WANDERING, CORRELATION_S, BLOCK, LAUNCH, PROCESS, WHITE = 0.11, 0.3, 0.005, 0.005, 0.01, 0.005
FACTOR, BLOCKS, STEPS, SENTINEL_S = 1.7, 7, 9, 0.5
#: Mean gap and length of episodes.
KINDS = {"1.5 s every 30 s": (30.0, 1.5), "3 s every 120 s": (120.0, 3.0), "none": (np.inf, 1.0)}
RUNS_S = (0.15, 1.0, 8.0, 100.0)
TREATMENTS = ("as before", "left out", "repeated", "lepaute", "oracle")
MACHINES, QUICK_MACHINES, RUNS, DRAWS, SEED = 200, 2, 400, 4000, 1
KEYS = ["episodes", "run_s", "runs", "treatment"]
NETWORKS = ("plain", "tails", "late", "modes", "slow starts", "slow beginnings")
MESSAGES, LARGEST_BYTES = 120, 64 << 20


class Course:
    """When the machine is slow."""

    def __init__(self, rng: np.random.Generator, gap_s: float, length_s: float, end_s: float) -> None:
        self.begin_s, self.end_s, now_s = [], [], 0.0
        while np.isfinite(gap_s) and (now_s := now_s + rng.exponential(gap_s)) < end_s:
            self.begin_s.append(now_s)
            now_s += length_s * rng.uniform(0.5, 1.5)
            self.end_s.append(now_s)

    def takes_s(self, start_s: float, work_s: float) -> float:
        """How long work takes that would take `work_s` undisturbed."""
        now_s, undone_s = start_s, work_s
        for begin_s, end_s in zip(self.begin_s, self.end_s, strict=True):
            if end_s <= now_s:
                continue
            if begin_s >= now_s + undone_s:
                break
            undone_s -= max(begin_s - now_s, 0.0)
            now_s = max(begin_s, now_s)
            if undone_s * FACTOR <= end_s - now_s:
                return now_s + undone_s * FACTOR - start_s
            undone_s -= (end_s - now_s) / FACTOR
            now_s = end_s
        return now_s + undone_s - start_s


def wandering(rng: np.random.Generator, start_s: Floats, duration_s: Floats, points: int = 40) -> Floats:
    """Means over the steps, by the exact process at some points of each."""
    at = (start_s[:, None] + duration_s[:, None] * (np.arange(points) + 0.5) / points).ravel()
    kept = np.exp(-np.diff(at) / CORRELATION_S)
    value = rng.normal(size=len(at)) * np.append(1.0, np.sqrt(1.0 - kept**2))
    for i in range(1, len(at)):
        value[i] += kept[i - 1] * value[i - 1]
    return WANDERING * value.reshape(-1, points).mean(axis=1)


@dataclass
class Calibration:
    """Rows (start_s, duration_s, undisturbed_s) of steps; of each process (block, launch, kind, core, attempt)."""

    rng: np.random.Generator
    course: Course
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.steps: list[tuple[float, float, float, int]] = []
        self.processes: list[tuple[int, int, int, int, int]] = []
        self.sentinels: list[tuple[float, float, int]] = []
        self.launches = 0

    def launch(self, block: int, level: float, probe: int, cores: Sequence[int], attempt: int = 0) -> None:
        """Processes side by side on these cores."""
        rng, begun_s, ends_s = self.rng, self.now_s, []
        level += LAUNCH * rng.normal()
        for core in cores:
            lengths, gaps = np.exp(rng.uniform(np.log(0.02), np.log(0.6), STEPS)), rng.uniform(0.0, 0.1, STEPS)
            logs = level + PROCESS * rng.normal() + WHITE * rng.normal(size=STEPS)
            logs = logs + wandering(rng, np.cumsum(lengths + gaps) - lengths, lengths)
            now_s = begun_s
            for length_s, gap_s, log in zip(lengths, gaps, logs, strict=True):
                now_s += gap_s
                takes_s = self.course.takes_s(now_s, length_s * np.exp(log))
                self.steps.append((now_s, takes_s, length_s, len(self.processes)))
                now_s += takes_s
            self.processes.append((block, self.launches, 2 * probe + core, core, attempt))
            ends_s.append(now_s)
        self.now_s = max(ends_s)
        self.launches += 1

    def sentinel(self, block: int) -> None:
        """A fixed work on both cores, of which the mean is known."""
        logs = 0.07 * self.rng.normal(size=2).mean()
        takes_s = self.course.takes_s(self.now_s, SENTINEL_S * np.exp(logs))
        self.sentinels.append((self.now_s, takes_s, block))
        self.now_s += takes_s + self.rng.uniform(2.0, 4.0)

    def series(self) -> StepSeries:
        start_s, duration_s, usual_s, process = (np.array(one) for one in zip(*self.steps, strict=True))
        block, launch, kind = (np.array(one, dtype=np.int64) for one in list(zip(*self.processes, strict=True))[:3])
        logs = np.log(duration_s / usual_s)
        return StepSeries(start_s, duration_s, logs, np.full(len(logs), 1e-6), process, block, launch, kind)

    def episodes(self) -> Episodes | None:
        """As the package sees them."""
        steps, processes = self.series(), np.array(self.processes, dtype=np.int64)
        of_step = processes[steps.process]
        cores = np.bincount(processes[:, 1])[of_step[:, 1]]
        usual_s = steps.duration_s / np.exp(steps.log_ratio)
        same = np.zeros(len(usual_s), dtype=np.int64)
        parts = Parts(
            steps.start_s, steps.start_s + steps.duration_s, steps.duration_s, usual_s, of_step[:, 1], of_step[:, 3],
            of_step[:, 2], same, of_step[:, 4] == 0, cores, same, np.arange(len(usual_s)),
        )  # fmt: skip
        date_s, duration_s, block = (np.array(one) for one in zip(*self.sentinels, strict=True))
        quiet = np.zeros(len(date_s), dtype=np.bool_)
        watch = Watch("here", (1, 1, 1), date_s, duration_s, block.astype(np.int64), quiet, BLOCKS, date_s)
        return episodes_of_parts(parts, [watch], ["here"])


def calibrated(rng: np.random.Generator, course: Course, repeat: bool) -> Calibration:
    """repeat: a launch that takes an episode on is made again once, at the end of its block"""
    made = Calibration(rng, course)
    for block in range(BLOCKS):
        level, again = BLOCK * rng.normal(), []
        for probe, cores in enumerate(((block % 2,), (0, 1), (0, 1))):
            made.sentinel(block)
            before = len(made.steps)
            made.launch(block, level, probe, cores)
            made.now_s += rng.uniform(1.0, 3.0)
            if repeat and slow_in(made.steps[before:]):
                again.append((probe, cores))
        for probe, cores in again:
            made.launch(block, level, probe, cores, attempt=1)
    made.sentinel(BLOCKS - 1)
    return made


def slow_in(steps: Sequence[tuple[float, float, float, int]]) -> bool:
    """Whether steps of a launch took so much longer that a campaign makes it again."""
    ratio = np.array([takes_s / usual_s for _, takes_s, usual_s, _ in steps])
    return bool(np.sum(ratio > np.exp(0.35)) >= 2)


def messages(made: Calibration, block: int, network: str) -> pandas.DataFrame:
    """Those of one start, as an archive has them; slow: in an episode; quiet_s: what they would take outside."""
    rng, rows, course = made.rng, [], made.course
    level, odd, begun_s = 0.03 * rng.normal(), rng.uniform() < 0.2, made.now_s
    in_mode, until_s = False, begun_s + rng.exponential(0.8)
    for size in np.exp(rng.uniform(0.0, np.log(LARGEST_BYTES), MESSAGES)):
        made.now_s += course.takes_s(made.now_s, rng.uniform(0.002, 0.008) + 6e-10 * size)
        if made.now_s > until_s:
            in_mode, until_s = not in_mode, made.now_s + rng.exponential(0.8 if in_mode else 0.2)
        log = level + 0.08 * abs(rng.normal())
        log += np.log(1.4) * (network == "modes" and in_mode) + np.log(1.5) * (network == "slow starts" and odd)
        log += np.log(1.5) * (network == "slow beginnings" and odd and made.now_s < begun_s + 0.3)
        log += np.log(10.0) * (network == "tails" and rng.uniform() < 0.03)
        log += np.log(3.0) * (network == "late" and rng.uniform() < 0.15)
        ends_s = []
        for rank in (0, 1):
            quiet_s = (1e-6 + size / 8e9) * np.exp(log + 0.03 * rng.normal())
            takes_s = course.takes_s(made.now_s, quiet_s)
            ends_s.append(made.now_s + takes_s)
            rows.append((made.now_s, takes_s, size, rank, takes_s > 1.05 * quiet_s, quiet_s))
        made.now_s = max(ends_s)
    frame = pandas.DataFrame(rows, columns=["start_s", "duration_s", "size_bytes", "rank", "slow", "quiet_s"])
    ends = {"host": "here", "peer": "here", "link": "local", "operation": "exchange", "clock_cost_s": 0.0}
    return frame.assign(archive=0, block=block, attempt=0, **ends)


def of_messages(kind: str, network: str, number: int) -> list[dict[str, object]]:
    """A row a way to search: everywhere, and where the package does."""
    gap_s, length_s = KINDS[kind]
    rng = np.random.default_rng([SEED, list(KINDS).index(kind), number, 2, NETWORKS.index(network)])
    made, frames = Calibration(rng, Course(rng, gap_s, length_s, 5000.0)), []
    for block in range(BLOCKS):
        for probe in rng.permutation(4):
            made.sentinel(block)
            if probe == 3:
                frames.append(messages(made, block, network))
            else:
                made.launch(block, BLOCK * rng.normal(), int(probe), ((block % 2,), (0, 1), (0, 1))[probe])
            made.now_s += rng.uniform(1.0, 2.0)
    made.sentinel(BLOCKS - 1)
    table = pandas.concat(frames, ignore_index=True)
    seen, slow = made.episodes(), table["slow"].to_numpy()
    found = slow_messages(table, {} if seen is None else seen.looks)
    usual_s = 1e-6 + table["size_bytes"] / 8e9
    quiet, rows = float((table["quiet_s"] / usual_s).mean()), []
    for search, left_out in (("everywhere", found), ("lepaute", found & (seen is not None))):
        error = float((table["duration_s"] / usual_s)[~left_out].mean()) / quiet - 1.0
        rows.append(
            {
                "network": network, "episodes": kind, "search": search, "archives": float(left_out.any()),
                "slow": float(left_out[slow].mean()) if slow.any() else np.nan, "others": float(left_out[~slow].mean()),
                "error": error, "error_before": float((table["duration_s"] / usual_s).mean()) / quiet - 1.0,
            }
        )  # fmt: skip
    return rows


def chosen(steps: StepSeries, kept: npt.NDArray[np.bool_]) -> StepSeries:
    """The same with some of the steps."""
    process, number = np.unique(steps.process[kept], return_inverse=True)
    of_step = (one[kept] for one in (steps.start_s, steps.duration_s, steps.log_ratio, steps.variance))
    return StepSeries(*of_step, number, *(one[process] for one in (steps.block, steps.launch, steps.kind)))


def drawn(rng: np.random.Generator, scale: TimeScale, steps: StepSeries, seconds: float) -> Floats:
    """Logarithms of durations of further runs as a simulation draws them; the level with its error by the jackknife."""

    def effect(of: LastingEffect) -> Floats:
        return of.relative_sd * rng.standard_t(of.degrees_of_freedom, DRAWS)

    def level(rows: npt.NDArray[np.bool_]) -> float:
        measured_s = steps.duration_s[rows]
        return float(np.log(np.sum(measured_s) / np.sum(measured_s / np.exp(steps.log_ratio[rows]))))

    block = steps.block[steps.process]
    without = np.array([level(block != one) for one in np.unique(block)])
    error = np.sqrt((len(without) - 1) / len(without) * np.sum((without - without.mean()) ** 2))
    x = seconds / (scale.correlation_s * np.exp(scale.correlation_error * rng.normal(size=DRAWS)))
    sd = scale.relative_sd * np.exp(scale.relative_sd_error * rng.normal(size=DRAWS))
    sd = sd * np.sqrt(2.0 / x * (1.0 + np.expm1(-x) / x))
    shared = level(block >= 0) + error * rng.standard_t(len(without) - 1, DRAWS)
    return shared + effect(scale.block) + effect(scale.launch) + effect(scale.process) + sd * rng.normal(size=DRAWS)


def true_sd(seconds: float) -> float:
    """Of the logarithm of an undisturbed run."""
    x = seconds / CORRELATION_S
    return float(np.sqrt(BLOCK**2 + LAUNCH**2 + PROCESS**2 + WANDERING**2 * 2 / x * (1.0 + np.expm1(-x) / x)))


def intervals(treatment: str, gap_s: float, length_s: float, seed: Sequence[int]) -> dict[tuple[float, str], Floats]:
    """Ends in seconds, by length of the run and what runs."""
    rng = np.random.default_rng(seed)
    made = calibrated(rng, Course(rng, gap_s, length_s, 5000.0), treatment in ("repeated", "lepaute"))
    steps, slow = made.series(), None
    if treatment != "as before":
        attempt = np.array(made.processes)[:, 4]
        replaced = np.zeros(len(attempt), dtype=np.bool_)
        if treatment == "repeated":
            again = {(block, kind) for block, _, kind, _, number in made.processes if number == 1}
            replaced = np.array([n == 0 and (b, k) in again for b, _, k, _, n in made.processes])
        seen = made.episodes()
        inside = np.zeros(len(steps.process), dtype=np.bool_) if seen is None else seen.rows
        steps = chosen(steps, ~inside & ~replaced[steps.process])
        if treatment == "lepaute" and seen is not None:
            state = seen.estimate
            errors = (state.odds_error, state.length_error, state.factor_error)
            slow = SlowNodes(1, state.share, state.length_s, state.factor, state.factor_relative_sd, errors)
    scale, result = fit_time_scale(steps), {}
    for seconds in RUNS_S:
        logs = drawn(np.random.default_rng([*seed, int(100 * seconds)]), scale, steps, seconds)
        low, middle, high = seconds * np.exp(np.quantile(logs, [0.025, 0.5, 0.975]))
        result[seconds, "undisturbed"] = np.array([low, high])
        effect = None if slow is None else slow.effect(middle, low, high)
        result[seconds, "any"] = np.array([low, high] if effect is None else [low * effect.low, high * effect.high])
    return result


def machine(kind: str, number: int) -> list[dict[str, object]]:
    """A row a treatment, length of the run, and what runs."""
    gap_s, length_s = KINDS[kind]
    key = [SEED, list(KINDS).index(kind), number]
    rng = np.random.default_rng([*key, 1])
    runs: dict[tuple[float, str], Floats] = {}
    for seconds in RUNS_S:
        usual_s = seconds * np.exp(true_sd(seconds) * rng.normal(size=RUNS))
        runs[seconds, "undisturbed"] = usual_s
        courses = [Course(rng, gap_s, length_s, 200.0 + 4.0 * seconds) for _ in range(RUNS)]
        starts_s = rng.uniform(50.0, 150.0, RUNS)
        pairs = zip(courses, starts_s, usual_s, strict=True)
        runs[seconds, "any"] = np.array([course.takes_s(start_s, one_s) for course, start_s, one_s in pairs])
    of = {one: intervals(one, gap_s, length_s, key) for one in TREATMENTS if one != "oracle"}
    of["oracle"] = {at: oracle(at, values) for at, values in runs.items()}
    rows: list[dict[str, object]] = []
    for treatment, ends in of.items():
        for (seconds, which), values in runs.items():
            low, high = np.log(ends[seconds, which])
            logs = np.log(values)
            outside = np.maximum(low - logs, 0.0) + np.maximum(logs - high, 0.0)
            rows.append(
                {
                    "episodes": kind, "machine": number, "treatment": treatment, "run_s": seconds, "runs": which,
                    "inside": float(np.mean(outside == 0.0)), "half_width_percent": 50.0 * (high - low),
                    "score_percent": 100.0 * float(high - low + 40.0 * np.mean(outside)),
                }
            )  # fmt: skip
    return rows


def oracle(at: tuple[float, str], values: Floats) -> Floats:
    """The interval of one who knows the law."""
    seconds, which = at
    if which == "undisturbed":
        return seconds * np.exp(1.96 * true_sd(seconds) * np.array([-1.0, 1.0]))
    return np.quantile(values, [0.025, 0.975])


def simulated(options: Options) -> pandas.DataFrame:
    """A row a kind, length of the run, what runs, and treatment."""
    count = QUICK_MACHINES if options.quick else MACHINES
    with ProcessPoolExecutor() as pool:
        work = (pool.map(partial(machine, kind), range(count)) for kind in KINDS)
        frame = pandas.DataFrame([row for rows in work for of_machine in rows for row in of_machine])
    groups = frame.groupby(KEYS, sort=False)
    result = groups.agg(
        inside=("inside", "mean"), error=("inside", "sem"), machines=("inside", "size"),
        half_width=("half_width_percent", "median"), score=("score_percent", "mean"),
    )  # fmt: skip
    return result.round(4).reset_index()


def searched(options: Options) -> pandas.DataFrame:
    """A row a network, kind of episodes, and way to search messages: means over machines, errors in absolute value."""
    count = (QUICK_MACHINES if options.quick else MACHINES) // 2
    with ProcessPoolExecutor() as pool:
        cases = [(kind, network) for network in NETWORKS for kind in KINDS]
        work = [pool.map(partial(of_messages, *case), range(count)) for case in cases]
        frame = pandas.DataFrame([row for rows in work for of_machine in rows for row in of_machine])
    for column in ("error", "error_before"):
        frame[column] = 100.0 * frame[column].abs()
    frame[["archives", "slow", "others"]] *= 100.0
    return frame.groupby(["network", "episodes", "search"], sort=False).mean().round(2).reset_index()


def judged(frame: pandas.DataFrame, messages: pandas.DataFrame) -> list[Goal]:
    """Coverage of what the package does, how much too wide a long interval is, and what is found in nothing."""
    table, goals = frame.set_index(KEYS), []
    for kind in KINDS:
        for which in ("undisturbed", "any"):
            row = table.loc[(kind, 8.0, which, "lepaute")]
            inside, error = 100.0 * row["inside"], 100.0 * row["error"]
            what, seen = f"{which} runs of 8 s inside, episodes: {kind}", f"{inside:.1f} ± {error:.1f} %"
            goals.append(Goal(what, "93 to 97 %", seen, bool(93.0 <= inside <= 97.0)))
    half = table["half_width"]["none", 100.0, "undisturbed"]
    ratio = float(half["lepaute"] / half["oracle"])
    goals.append(Goal("half-width at 100 s over an oracle's, no episodes", "at most 1.3", f"{ratio:.2f}", ratio <= 1.3))
    nothing = messages[(messages["episodes"] == "none") & (messages["search"] == "lepaute")]["archives"]
    return [*goals, at_most("archives without episodes that lose messages, any network", 5.0, float(nothing.max()))]


def text_of_messages(frame: pandas.DataFrame) -> str:
    rows = []
    for network, of_network in frame.groupby("network", sort=False):
        none, some = (part for _, part in of_network.groupby(of_network["episodes"] != "none"))
        lost, kept = none.set_index("search")["archives"], some[some["search"] == "lepaute"].mean(numeric_only=True)
        means = (f"{kept[name]:.1f}" for name in ("slow", "error_before", "error"))
        rows.append((str(network), f"{lost['everywhere']:.0f}", f"{lost['lepaute']:.0f}", *means))
    header = ("network", "lose messages, searched everywhere", "lepaute", "slow ones left out", "error before", "after")
    return f"""
Messages of {MACHINES // 2} machines a kind and network, %: archives without episodes that lose some; with episodes, the
share of slow ones left out, and the error of the mean time.

{markdown(header, rows)}
"""


def text(frame: pandas.DataFrame) -> str:
    table = frame.set_index(KEYS)
    rows = []
    for kind in KINDS:
        for which in ("any", "undisturbed") if kind != "none" else ("undisturbed",):
            cells = []
            for treatment in TREATMENTS:
                row = table.loc[(kind, 8.0, which, treatment)]
                cells.append(f"{100 * row['inside']:.1f} / {row['half_width']:.1f} / {row['score']:.1f}")
            rows.append((kind, which, *cells))
    machines = int(table["machines"].iloc[0])
    return f"""## Episodes that no counter shows

Runs of 8 s on {machines} simulated machines a kind, whose cores all take {FACTOR} times as long at times
(`validation/episodes.py`, its head has the law and what was fixed before): inside, %, half-width, %, interval score.

{markdown(("episodes", "runs", *TREATMENTS), rows)}
"""


def main() -> int:
    options = options_of(__doc__)
    makers = {STUDY: simulated, f"{STUDY}_messages": searched}
    frames = [
        pandas.read_csv(options.table(name)) if options.summarise else make(options) for name, make in makers.items()
    ]
    for name, frame in zip(makers, frames, strict=True):
        options.write(name, frame)
    return close(options, STUDY, judged(*frames), f"{text(frames[0])}{text_of_messages(frames[1])}\n{{goals}}\n")


if __name__ == "__main__":
    run_main(main)
