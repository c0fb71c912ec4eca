"""The kinds of machines, and their scatter."""

from dataclasses import dataclass, replace

import numpy as np

#: Machines come in rounds: one of each kind alone, then so many combinations; after that many rounds only combinations.
COMBINATIONS, ROUNDS = 3, 14
MAX_COMBINED = 4


@dataclass(frozen=True, slots=True)
class Scatter:
    """Relative standard deviations of what varies, as factors exp(normal) on durations unless said otherwise.

    call             : of a single call, half-normal, in proportion to its mean; skewed where `uneven` is set
    process          : of each process, on all of its kernel calls
    run              : of each start of mpirun, common to its ranks; a probe of one process is a start of its own
    day, core_day    : of each day, common to all cores, and of each core
    core             : of each core, lasting
    drift            : amplitude of a sinusoid in time
    wander           : of a slow change inside each process (Ornstein-Uhlenbeck)
    outliers         : share of calls that take 3 to 10 times as long
    uneven           : the sd of a call is call * mean + UNEVEN_S, and the noise is exponential
    sorted           : rows of the designs in increasing order of size, levels of the content of operands in stretches
    few              : two blocks with as few rows as a quick calibration
    message, message_run, late_messages: sd of the logarithm of single messages; factor of a start of mpirun on the
                       network; share of messages that take 3 times as long
    """

    call: float = 0.03
    process: float = 0.003
    run: float = 0.0
    day: float = 0.0
    core_day: float = 0.0
    core: float = 0.0
    drift: float = 0.0
    wander: float = 0.0
    outliers: float = 0.0
    uneven: bool = False
    sorted: bool = False
    few: bool = False
    message: float = 0.05
    message_run: float = 0.0
    late_messages: float = 0.0


PLAIN = Scatter()
KINDS: dict[str, dict[str, float | bool]] = {
    "plain": {},
    "process": {"process": 0.02},
    "run": {"run": 0.03},
    "day": {"day": 0.02, "core_day": 0.015},
    "core": {"core": 0.03},
    "drift": {"drift": 0.02},
    "outliers": {"outliers": 0.02},
    "uneven": {"call": 0.02, "uneven": True},
    "unshuffled": {"sorted": True, "wander": 0.02},
    "few": {"few": True},
    "network": {"message": 0.3, "message_run": 0.1, "late_messages": 0.03},
}
#: The engine draws the noise of one kernel from one law: it cannot be both.
EXCLUSIVE = frozenset({"outliers", "uneven"})


def kinds_of(number: int, seed: int) -> tuple[str, ...]:
    """The kinds of the machine of that number, from 0; a combination is of 2 to MAX_COMBINED kinds, "plain" aside."""
    names = tuple(KINDS)
    in_round, position = divmod(number, len(names) + COMBINATIONS)
    if in_round < ROUNDS and position < len(names):
        return (names[position],)
    rng = np.random.default_rng([seed, number, 1])
    while True:
        count = int(rng.integers(2, MAX_COMBINED + 1))
        chosen = sorted(rng.choice(len(names) - 1, count, replace=False) + 1)
        kinds = tuple(names[at] for at in chosen)
        if not set(kinds) >= EXCLUSIVE:
            return kinds


def scatter_of(kinds: tuple[str, ...]) -> Scatter:
    """What all these kinds together vary."""
    result = PLAIN
    for kind in kinds:
        result = replace(result, **KINDS[kind])
    return result
