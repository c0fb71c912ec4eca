"""The difference of two points, with an interval that holds the difference of two real runs; or nothing to be told.

Runs of equal seeds see one machine on one day, so that errors which both points have cancel in the ratio of their
times (simulate/prediction/comparing.py says which, and makes the difference as it does for predictions). Where the
points place other ranks on the CPUs, the errors of a CPU weigh otherwise in both, and less cancels: the interval is
wider by itself, and `Configuration.geometry` says why.
"""

from collections.abc import Sequence

from lepaute.errors import InputError
from lepaute.simulate.prediction.comparing import Difference, Pairing, Runs
from lepaute.stats.control_variates import Controls
from lepaute.study.evaluation import Outcome, sampling_sd_of_mean

#: Of points of one machine.
ONE_MACHINE = Pairing(shared=True, run_noise=True, own_sd=0.0, assumed=False)


def difference(
    reference: Sequence[Outcome],
    other: Sequence[Outcome],
    response: str = "time_s",
    *,
    again: Sequence[Outcome] | None = None,
    pair: Pairing = ONE_MACHINE,
    controls: Sequence[Controls | None] = (None, None, None),
) -> Difference:
    """The difference of two points from the outcomes of each, paired by seed: those that both have, none refused.

    again : of the reference, with other noise, where both have the same
    pair : what the two have in common;  controls : of all, run by run
    Raises InputError where no seed is common, where a response is not above 0, or where runs of one seed have the same
    repeat: they would share the effect of the run, and two real runs do not.
    """
    all_runs = [
        {outcome.trial.seed: outcome for outcome in outcomes if outcome.refusal is None}
        for outcomes in (reference, other, *([] if again is None else [again]))
    ]
    seeds = [seed for seed in all_runs[0] if all(seed in runs for runs in all_runs)]
    if not seeds:
        raise InputError("two points have no seed in common; simulate both with the same seeds")
    same_noise = any(all_runs[-2][seed].trial.repeat == all_runs[-1][seed].trial.repeat for seed in seeds)
    if pair.needs_other_noise and same_noise:
        raise InputError("both points have the same noise, and two real runs do not; give one of them another repeat")
    made = []
    for runs, of_runs in zip(all_runs, controls, strict=False):
        values = [runs[seed][response] for seed in seeds]
        if min(values) <= 0.0:
            raise InputError(f"{response} is 0 in a run, and nothing is a multiple of it")
        made.append(Runs(values, sampling_sd_of_mean(runs[seed] for seed in seeds), of_runs))
    one, two, *third = made
    return pair.difference(one, two, *third)
