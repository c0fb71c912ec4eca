"""What further trials tell of the points of a study: how far they may be trusted, as simulate/prediction/trust says of
predictions, and the controls of their runs, as simulate/prediction/controls has them. A study's runs may come from
anywhere (threads, workers, a store), and so may these.
"""

from collections.abc import Iterable, Mapping, Sequence

from lepaute.simulate.conditions import Conditions
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.prediction.predicting import usual_engine
from lepaute.simulate.prediction.trust import DRAWN, MIN_OUTSIDE, SEEDS, Trust, relative_sd
from lepaute.simulate.prediction.warnings import BLOCK_SIZES_GUESSED, joined
from lepaute.stats.control_variates import MIN_CONTROLLED, Controls
from lepaute.stats.decision import SPOILS, Decision, Weakness
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import Evaluate, Outcome, Point, Trial, called

#: A point is priced for a power of two of runs, this many at least: with more runs it is rarely priced again.
MIN_PRICED = 16


class Judge:
    """Judges points by their outcomes, and by further trials where something is extrapolated; each point once.

    The trials draw the errors of extrapolation alone. They cost no budget, and are no outcomes of the study.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self.known: dict[Point, Trust] = {}

    def __call__(self, outcomes_of: Mapping[Point, Sequence[Outcome]]) -> Mapping[Point, Trust]:
        """The statement on each of these points; on those that were refused, by what is known of their other runs."""
        new = {point: by_share(each) for point, each in outcomes_of.items() if point not in self.known}
        doubtful = [
            point
            for point, trust in new.items()
            if trust.computing >= MIN_OUTSIDE and all(one.refusal is None for one in outcomes_of[point])
        ]
        trials = [Trial(point, seed, drawn=name) for point in doubtful for name in DRAWN for seed in SEEDS]
        outcomes = self._evaluate(trials) if trials else []
        times_s = {outcome.trial: outcome["time_s"] for outcome in outcomes if outcome.refusal is None}
        for point in doubtful:
            of_name = [[times_s.get(Trial(point, seed, drawn=name)) for seed in SEEDS] for name in DRAWN]
            pairs = [(one, other) for one, other in zip(*of_name, strict=True) if one is not None and other is not None]
            if pairs:
                new[point] = Trust(new[point].computing, new[point].messages, relative_sd(*zip(*pairs, strict=True)))
        self.known |= new
        return {point: self.known[point] for point in outcomes_of}


class Pricing:
    """Prices points by further trials: the first run of each once more, whose outcome tells what the draws of all its
    runs, and of further ones, do to it. These cost no budget, and are no outcomes of the study."""

    def __init__(self, configurations: Configurations, evaluate: Evaluate) -> None:
        self._configurations, self._evaluate = configurations, evaluate

    def __call__(self, outcomes_of: Mapping[Point, Sequence[Outcome]]) -> dict[Point, Controls]:
        """The controls of the runs of these points, in the order of their seeds.

        Of points with too few runs, with a refused one, or of an engine that cannot tell there are none.
        """
        trials = {
            point: trial for point, each in outcomes_of.items() if (trial := self._trial(point, each)) is not None
        }
        return {
            point: outcome.controls.first(len(outcomes_of[point]))
            for point, outcome in zip(trials, self._evaluate(list(trials.values())) if trials else [], strict=True)
            if outcome.controls is not None
        }

    def _trial(self, point: Point, outcomes: Sequence[Outcome]) -> Trial | None:
        count = len(outcomes)
        if count < MIN_CONTROLLED or any(outcome.refusal is not None for outcome in outcomes):
            return None
        trials = [outcome.trial for outcome in outcomes]
        first, repeat = trials[0].seed, trials[0].repeat
        in_order = [(trial.seed, trial.repeat) for trial in trials] == [(first + at, repeat) for at in range(count)]
        if not in_order or not usual_engine(self._configurations.at(point).application).samples:
            return None
        return Trial(point, first, repeat, priced=max(MIN_PRICED, 1 << (count - 1).bit_length()))


def by_share(outcomes: Iterable[Outcome]) -> Trust:
    """The statement on a point that the shares of its first run give, as on a prediction of a single run."""
    first = min([run for run in outcomes if run.refusal is None], key=lambda run: run.trial.seed, default=None)
    if first is None:
        return Trust(0.0)
    share = first.extrapolated
    return Trust(share, first.messages_outside, None if share >= MIN_OUTSIDE else 0.0)


def decision_of(is_clear: bool | None, trusts: Iterable[Trust]) -> Decision:
    """That an answer leaves little open: unknown where nothing that it rests on is comparable.

    is_clear : whether it leaves little open if that is comparable; None: a single run of each tells nothing
    """
    of_points = [trust.decision for trust in trusts]
    none = bool(of_points) and not any(point.is_shown for point in of_points)
    weaknesses = dict.fromkeys(weakness for point in of_points for weakness in point.weaknesses)
    some = [weakness for weakness in weaknesses if none or not SPOILS[weakness.cause]]
    if is_clear is None:
        some.append(Weakness("too few", "one run of each configuration"))
    return Decision.of(bool(is_clear) and all(point.is_shown for point in of_points), False, some)


def _of_cables(platforms: Sequence[Platform]) -> list[str]:
    """Which cables of a fat tree carry messages, where trees with other switches are compared."""
    trees = {
        (platform.topology.parameters or "", platform.topology.cables or "all")
        for platform in platforms
        if platform.topology.kind == "fat-tree"
    }
    parallel = [rule for text, rule in trees if any(int(word) > 1 for word in text.split(";")[-1].split(","))]
    if len({parameters for parameters, _ in trees}) < 2 or not parallel:
        return []
    if "first" in parallel:
        return [
            "of parallel cables between two switches the first carries all messages (cables: first), as in SimGrid "
            "before 3.32: a switch that is removed takes the one cable of each leaf switch that is used"
        ]
    return [
        "messages are spread evenly over all parallel cables between two switches: a switch that is removed takes all "
        "its cables of each leaf switch; published studies with SimGrid before 3.32 used the first of them alone "
        "(platform.topology.cables: first), by which a removed switch costs more"
    ]


def _of_slow_state(conditions: Sequence[Conditions]) -> list[str]:
    """That times are of any run, or leave the slow state out, where a platform has one."""
    states = {condition.state for condition in conditions if condition.platform.slow_state is not None}
    if "any" in states:
        return ["times are of any run: those that meet the slow state of the machine take longer (base.state)"]
    return ["times are of undisturbed runs, without the slow state of the machine (base.state: any)"] if states else []


def caveats(
    outcomes: Iterable[Outcome], configurations: Configurations, trusts: Mapping[Point, Trust]
) -> tuple[str, ...]:
    """What a reader of a study's answer must know: the warnings of its points, those that are alike as one; trusts : of
    the points that were judged."""
    first: dict[Point, Outcome] = {}
    for outcome in outcomes:
        if outcome.refusal is None:
            first.setdefault(outcome.trial.point, outcome)
    sizes = {getattr(configurations.at(point).application, "nb", None) for point in first}
    guessed = len(sizes) > 1 and any(one.guesses_block_size for one in first.values())
    apart = [(f"not comparable, {'; '.join(one.reasons)}: {called(point)}",) if one.reasons else ()
             for point, one in trusts.items()]  # fmt: skip
    return (
        *joined([one.caveats for one in first.values()]),
        *([BLOCK_SIZES_GUESSED] if guessed else []),
        *_of_slow_state([configurations.at(point).conditions for point in first]),
        *_of_cables([configurations.at(point).conditions.platform for point in first]),
        *joined(apart),
    )
