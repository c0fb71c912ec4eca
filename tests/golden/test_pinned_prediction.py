"""One prediction, pinned: a change of results is meant or it is a fault, and is never unnoticed.

Whoever means to change results writes the new figures here, and says in the changelog why they changed.
"""

import os
from collections.abc import Iterator

import pytest

from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.platform import load_platform

HPL = Hpl(n=6000, nb=128, p=4, q=8, depth=1, bcast="2ring")
MESSAGES = 52660
TIMES_S = (0.3237496411071868, 0.37063443577887994, 0.33604735002038094, 0.3313587908729094)
#: Of before there were layers for what is extrapolated (here the narrow calls of the panel) and for overheads.
NOT_EXTRAPOLATED_S = (0.32224681079735906, 0.361322260508266, 0.3340282755727951, 0.32194026790788316)


@pytest.fixture(params=["one core", "all cores"])
def cores(request: pytest.FixtureRequest) -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    if request.param == "one core":
        os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("cores")
def test_a_prediction_of_dahu_is_what_it_was_to_the_last_bit() -> None:
    prediction = predict(HPL, load_platform("dahu-2020-01"), runs=4)
    assert prediction.simulation.messages == MESSAGES
    assert tuple(run.time_s for run in prediction.run_list) == TIMES_S


def test_a_prediction_without_the_later_layers_is_what_it_was_before_there_were_any() -> None:
    prediction = predict(
        HPL, load_platform("dahu-2020-01"), runs=4, layers=Layers(extrapolation=False, overheads=False)
    )
    assert tuple(run.time_s for run in prediction.run_list) == NOT_EXTRAPOLATED_S
