"""How many runs tell a distribution, and what is known of their draws without simulating more of them."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from lepaute.stats.control_variates import Controls

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.conditions import Conditions
    from lepaute.simulate.engine import Engine, Simulator

#: Runs of a program that is emulated, unless given.
DEFAULT_RUNS = 10
#: Runs of the native engine, unless given: this many at least, and more where they are quick.
MIN_RUNS, MAX_USUAL_RUNS = 12, 100
#: Time in events, of some 65 ns each: of all quick runs together (0.7 s), and of a run besides its events (3 ms).
QUICK_EVENTS, EVENTS_OF_RUN = 1e7, 5e4
#: Further draws that runs are priced for, and the CPU time of each; where each is another draw from a population.
DRAWS, DRAW_S, DRAWS_OF_POPULATION, DRAW_OF_POPULATION_S = 1000, 2e-4, 100, 5e-3
#: Seeds of the draws, beyond those of any run.
FIRST_DRAW = 2**40


def usual_runs(applications: "Sequence[Application]", engine: "Engine", fidelity: str = "auto") -> int:
    """Runs of each application, unless given: as many as are quick, 12 to 100; by counts, never by a clock."""
    if not engine.samples:
        return DEFAULT_RUNS
    behaviours = [application.on() for application in applications]
    events = sum(each.simulated_share(fidelity) * each.events + EVENTS_OF_RUN for each in behaviours)
    return int(min(max(MIN_RUNS, QUICK_EVENTS / events), MAX_USUAL_RUNS))


def _draws_of(application: "Application", conditions: "Conditions") -> tuple[int, float]:
    """How many further draws runs are priced for, and the CPU time of each."""
    if conditions.draws_population and application.on().kernels.modelled:
        return DRAWS_OF_POPULATION, DRAW_OF_POPULATION_S
    return DRAWS, DRAW_S


def pricing_s(application: "Application", conditions: "Conditions") -> float:
    """CPU time that pricing takes besides its run."""
    draws, draw_s = _draws_of(application, conditions)
    return draws * draw_s


def controls_of(
    application: "Application", simulator: "Simulator", conditions: "Conditions", seeds: Sequence[int]
) -> Controls | None:
    """Control variates of the runs with these seeds, one of which was priced; None if the engine has none."""
    from lepaute import _core

    draws = range(FIRST_DRAW, FIRST_DRAW + _draws_of(application, conditions)[0])
    effects = simulator.effects(application, [*seeds, *draws])
    if effects is None:
        return None
    if conditions.transfer is not None:
        factor = partial(conditions.transfer.factor, application=application)
        effects = [[*effect, factor(seed)] for seed, effect in zip([*seeds, *draws], effects, strict=True)]
    rows = tuple(tuple(map(_core.natural_log, effect)) for effect in effects)
    return Controls(rows[: len(seeds)], rows[len(seeds) :])
