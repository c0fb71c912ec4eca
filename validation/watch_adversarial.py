"""Cases made to mislead a watch: what is proposed, what is said, and what is said wrongly beside it.

    .venv/bin/python validation/watch_adversarial.py [--quick] [--summarise]

Fixed before any result was looked at. Fleets of 32 processors in 16 nodes and 90 days, one factor, AR(1) 0.3 with 0.5
%, levels 3 % apart; defaults of `propose` and `notices`, raw verdicts (r = 1) beside. 10 fleets a case, 10 of each kind
of noise without a change. Planted, and the goal in at least 9 of 10 fleets:

* bad from the start: node 4 is 25 % slow in all 90 days: a notice on it, no event;
* drift: node 4 loses 2 % steadily: an event on it alone, of the right sign;
* vanished: node 4 has no result from day 60 on: no event;
* half of the nodes: 8 of 16 lose 5 % on day 50: one platform event with exactly these, dated to the day;
* two faults: node 3 loses 4 % on day 50, node 11 gains 4 % on day 53: two events, each on its node;
* clock set back: from job 1060 on node 4 is 30 days late and lost 5 %: a notice on its dates, no event;
* late job: the last fifth of the rows is given first, shuffled: the same events and notices as in order;
* spike: one job of one processor is off by 50 %; odd beginning: three jobs of a node are 10 % slow: no event;
* power drops: nodes 5 to 8 are 8 % slow on four days: one platform event of days with exactly these nodes.

Fixed after a trial of two fleets a case: fleets of each case are its own; the half in "clock set back" that cannot be
told apart is left out; a drift has a test of its own; alarms that a step explains are no days of their own. False (of
what is not planted): at most 5 % of the fleets within the binomial bound (99.9 %), also for each kind without a change.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import binom
from support.fleets import BEGIN_S, DAY_S, date_of, fleet_values
from support.goals import Goal
from support.null_streams import CPUS, KINDS, autoregressive, null_streams
from support.options import Options
from support.report import run_study

from lepaute.watch.judging.judge import judge
from lepaute.watch.notices.notice import DATES, UNLIKE_PEERS, Notice, notices
from lepaute.watch.proposals.platform_events import propose
from lepaute.watch.proposals.proposed_event import ProposedEvent

STUDY = "watch_adversarial"
Floats = npt.NDArray[np.float64]

FLEETS, MACHINES, DAYS = 10, 32, 90
NEEDED = 9
LEVEL = 0.05
SEED = 20261123
PER_CENT = 2.0  # standard deviations


def noise(number: int) -> Floats:
    return autoregressive(np.random.default_rng((SEED, number)).normal(size=(MACHINES, DAYS)), 0.3)


def node(number: int) -> slice:
    """The processors of a node."""
    return slice(2 * number - 2, 2 * number)


Found = tuple[tuple[ProposedEvent, ...], tuple[Notice, ...]]


def found_in(values: pd.DataFrame) -> Found:
    return propose(values, verdicts=judge(values, windows=(1,))), notices(values)


def event_nodes(events: tuple[ProposedEvent, ...]) -> list[tuple[str, ...]]:
    return sorted(tuple(sorted((name for _, name in event.nodes), key=int)) for event in events)


def bad_from_the_start(number: int) -> tuple[bool, int]:
    z = noise(number)
    z[node(4)] -= 25 * PER_CENT
    events, said = found_in(fleet_values(z, seed=number))
    right = [each for each in said if (each.kind, each.node) == (UNLIKE_PEERS, "4")]
    return bool(right) and not events, len(events) + len(said) - len(right)


def drift(number: int) -> tuple[bool, int]:
    z = noise(number)
    z[node(4)] -= 2 * PER_CENT * np.arange(DAYS) / DAYS
    events, said = found_in(fleet_values(z, seed=number))
    right = [event for event in events if event_nodes((event,)) == [("4",)] and event.factors[0].direction < 0]
    return len(right) == 1, len(events) + len(said) - len(right)


def vanished(number: int) -> tuple[bool, int]:
    z = noise(number)
    z[node(4), 60:] = np.nan
    events, said = found_in(fleet_values(z, seed=number))
    return not events, len(events) + len(said)


def half_of_the_nodes(number: int) -> tuple[bool, int]:
    z = noise(number)
    chosen = sorted(np.random.default_rng((SEED, number, 2)).permutation(16)[:8] + 1)
    for each in chosen:
        z[node(int(each)), 50:] -= 5 * PER_CENT
    events, said = found_in(fleet_values(z, seed=number))
    right = [
        event
        for event in events
        if event_nodes((event,)) == [tuple(str(one) for one in chosen)] and str(event.date) == date_of(50)
    ]
    return len(right) == 1 and len(events) == 1, len(events) + len(said) - len(right)


def two_faults(number: int) -> tuple[bool, int]:
    z = noise(number)
    z[node(3), 50:] -= 4 * PER_CENT
    z[node(11), 53:] += 4 * PER_CENT
    events, said = found_in(fleet_values(z, seed=number))
    right = [event for event in events if event_nodes((event,)) in ([("3",)], [("11",)])]
    return event_nodes(events) == [("11",), ("3",)], len(events) + len(said) - len(right)


def clock_set_back(number: int) -> tuple[bool, int]:
    values = fleet_values(noise(number), seed=number)
    late = (values["node"] == "4") & (values["job"].astype(int) >= 1060)
    values.loc[late, "started_s"] -= 30 * DAY_S
    values.loc[late, "value"] *= 0.95
    events, said = found_in(values)
    right = [each for each in said if (each.kind, each.node) == (DATES, "4")]
    return len(right) == 1 and not events, len(events) + len(said) - len(right)


def late_job(number: int) -> tuple[bool, int]:
    z = noise(number)
    z[node(4), 50:] -= 5 * PER_CENT
    values = fleet_values(z, seed=number)
    late = values["started_s"] >= BEGIN_S + 72 * DAY_S
    other = pd.concat([values[late].sample(frac=1, random_state=number), values[~late]])
    events, said = found_in(values)
    again, said_again = found_in(other)
    # day events read raw verdicts, steps the values: both have to be the same
    right = [event for event in events if event_nodes((event,)) == [("4",)]]
    same = [str(event) for event in events] == [str(each) for each in again] and said == said_again
    return same and bool(right), len(events) + len(said) - len(right)


def spike(number: int) -> tuple[bool, int]:
    z = noise(number)
    z[7, 45] -= 50 * PER_CENT
    events, said = found_in(fleet_values(z, seed=number))
    return not events, len(events) + len(said)


def odd_beginning(number: int) -> tuple[bool, int]:
    z = noise(number)
    z[node(4), :3] -= 10 * PER_CENT
    events, said = found_in(fleet_values(z, seed=number))
    return not events, len(events) + len(said)


def power_drops(number: int) -> tuple[bool, int]:
    z = noise(number)
    for day in (40, 47, 55, 70):
        z[node(5).start : node(8).stop, day] -= 8 * PER_CENT
    events, said = found_in(fleet_values(z, seed=number))
    right = [event for event in events if event_nodes((event,)) == [("5", "6", "7", "8")] and event.shape == "days"]
    return len(right) == 1 and len(events) == 1, len(events) + len(said) - len(right)


CASES: dict[str, Callable[[int], tuple[bool, int]]] = {
    "bad from the start": bad_from_the_start,
    "drift of 2 % in three months": drift,
    "vanished": vanished,
    "half of the nodes": half_of_the_nodes,
    "two faults": two_faults,
    "clock set back": clock_set_back,
    "late job": late_job,
    "spike": spike,
    "odd beginning": odd_beginning,
    "power drops": power_drops,
}

TEXT = """## Cases made to mislead the watch

Simulated fleets (`validation/watch_adversarial.py`, where each case and its goal stand). Steps and drifts, days, and
each kind of notice have a level of 5 % each. Where each machine has another correlation, from 0 to 0.8 ("machines
differ"), more is false than promised.

{goals}

{cases}
"""


def simulated(options: Options) -> pd.DataFrame:
    """A row a (case, fleet): whether it came out as wanted, and how many events and notices were wrong."""
    fleets = 2 if options.quick else FLEETS
    rows = []
    for place, (case, run) in enumerate(CASES.items()):
        for number in range(fleets):
            # fleets are numbered through: one with odd levels would count in all cases
            right, false = run(1000 * place + number)
            rows.append({"case": case, "fleet": number, "right": right, "false": false})
    for place, kind in enumerate(KINDS, len(CASES)):
        streams = null_streams(kind, fleets * CPUS, 120, seed=SEED).reshape(fleets, CPUS, 120)
        for number, z in enumerate(streams):
            values = fleet_values(z, seed=1000 * place + number)
            false = len(propose(values, least_change=0.0)) + len(notices(values, least_change=0.0))
            rows.append({"case": f"no change, {kind}", "fleet": number, "right": not false, "false": false})
    return pd.DataFrame(rows)


def judged(frame: pd.DataFrame) -> list[Goal]:
    goals = []
    for case in CASES:
        part = frame[frame["case"] == case]
        right, fleets = int(part["right"].sum()), len(part)
        needed = min(NEEDED, fleets)
        goals.append(Goal(case, f"at least {needed} of {fleets}", str(right), right >= needed))
    planted = frame[frame["case"].isin(CASES)]
    goals.append(rare("fleets with anything false, all cases", planted))
    goals += [
        rare(f"fleets with anything, no change, {kind}", frame[frame["case"] == f"no change, {kind}"]) for kind in KINDS
    ]
    return goals


def rare(what: str, part: pd.DataFrame) -> Goal:
    most, seen = int(binom.ppf(0.999, len(part), LEVEL)), int((part["false"] > 0).sum())
    return Goal(what, f"at most {most} of {len(part)}", str(seen), seen <= most)


if __name__ == "__main__":
    run_study(STUDY, simulated, judged, TEXT)
