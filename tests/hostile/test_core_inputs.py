"""Whatever the extension module is given, the process goes on: a value is refused in one line, or has a finite time."""

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hostile.core_inputs import SANITIZED, Engine, places
from hypothesis import given, settings
from hypothesis import strategies as st

NAN, INF = float("nan"), float("inf")
WHOLE = (0, 1, -1, 2, 3, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**64 - 1, 2**70)
REAL = (0.0, -0.0, -1.0, 5e-324, 1e-300, 1e-9, 0.5, 1.0, 1e9, 1e15, 1e100, 1e300, 1.7e308, INF, -INF, NAN)
OTHER = ("", "x", [], {}, True, [0], [2**32 - 1] * 4, ["x"], [NAN] * 9)
#: What would be a long simulation, and no hostile one, in the numbers of steps that these places decide.
LONG = {"hpl.n": 20_000, "hpl.depth": 50, "stencil.iterations": 100, "machine.day_cpu_degrees_of_freedom": 10_000}
PLACES = places()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    asked = Engine()
    yield asked
    asked.close()


def is_long(place: str, value: Any) -> bool:
    """Whether a value is allowed, and takes long, or more memory than there is where that ends the process."""
    if place == "run.models" and SANITIZED:
        return isinstance(value, int) and value > 2**20
    if place == "hpl.nb":
        return bool(0 < value < 16) if isinstance(value, int | float) else False
    return place in LONG and isinstance(value, int) and LONG[place] < value <= 2**31 - 1


def check(answer: str) -> None:
    """Asserts that it is one of those that are allowed."""
    kind, _, rest = answer.partition(" ")
    if kind == "time":
        assert 0.0 <= float(rest) < math.inf, answer
    else:
        # A program whose ranks do not go together is one; which of them wait is told.
        told = re.match(r"the run was cancelled$|deadlock: rank \d|rank \d+ never ", rest)
        assert kind in ("refused", "MemoryError") or told, answer


def values_for(value: Any) -> list[Any]:
    """Hostile values for a place where `value` stands."""
    if isinstance(value, list):
        elements = {type(each) for each in value} or {int, float}
        numbers = (WHOLE if int in elements else ()) + (REAL if float in elements else ())
        return [*OTHER, *([number] * max(1, len(value)) for number in numbers), [*value, *value], value[1:]]
    return [*(WHOLE if isinstance(value, int) else ()), *(REAL if not isinstance(value, bool | str) else ()), *OTHER]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("root", sorted({re.split(r"[.\[]", place)[0] for place in PLACES}))
def test_any_value_in_any_field_is_refused_or_has_a_finite_time(engine: Engine, root: str) -> None:
    bad = []
    asked = 0
    for place, before in PLACES.items():
        if re.split(r"[.\[]", place)[0] != root:
            continue
        for value in values_for(before):
            if is_long(place, value):
                continue
            asked += 1
            answer = engine([(place, value)])
            try:
                check(answer)
            except AssertionError:
                bad.append(f"{place} = {value!r}: {answer}")
    assert asked > 30
    assert bad == []


def test_every_kind_of_place_is_tried() -> None:
    """The list of fields comes from the module: were it empty, the tests above would be of nothing."""
    expected = {
        "hpl.nbmin", "hpl.pivot_rows", "stencil.grid", "machine.cores_per_node", "machine.network.iprobe_s",
        "machine.network.remote.segments[0].bandwidth_Bps", "machine.network.remote.segments[0].send.intercept_s",
        "piece.where.low.m", "piece.covariance_terms", "kernel.crowding[0].share", "options.levels", "program.op.peer",
        "program.communicators",
    }  # fmt: skip
    assert expected <= set(PLACES)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("hpl.nbmin", 0, "nbmin is 0; it is 1 to 2147483647"),
        ("hpl.ndiv", 0, "ndiv is 0; it is 2 to 2147483647"),
        ("hpl.ndiv", 1, "ndiv is 1; it is 2 to 2147483647"),
        ("hpl.align", 0, "align is 0; it is 1 to 2147483647"),
        ("hpl.n", 2**62, "n is 4611686018427387904; it is 1 to 2147483647"),
        ("hpl.depth", 2**32 - 1, "depth is 4294967295; it is 0 to 1024"),
        ("hpl.pivot_rows", [0, 1], "pivot_rows is of 2 rows; there is one for each of n columns, or none"),
        ("machine.cores_per_node", 0, "machine.cores_per_node is 0; it is 1 to 65536"),
        ("machine.sockets_per_node", 0, "machine.sockets_per_node is 0; it is 1 to 2"),
        ("machine.threads_per_rank", 2**32 - 1, "machine.threads_per_rank is 4294967295; it is 1 to 65536"),
        ("machine.network.remote.segments", [],
         "machine.network.remote.segments is empty; every size of message needs a segment"),
        ("machine.network.node_link_Bps", NAN,
         "machine.network.node_link_Bps is nan; it is a number from 1e-09 to 1e+300"),
        ("machine.network.remote.segments[1].latency_s", INF,
         "machine.network.remote.segments[1].latency_s is inf; it is a number from 0 to 1e+15"),
        ("machine.episode_s", 1e-300, "machine.episode_s is 1e-300; it is a number from 1e-09 to 1e+15"),
        ("run.topology_nodes", 1, "machine.topology is of 1 nodes; the machine has 2, and all are joined by it"),
        ("run.cores", [], "core_of_rank is of 0 cores; there is one for each of 4 ranks"),
        ("run.cores", [0, 1, 2, 2**32 - 1], "a rank is mapped to a core that the machine does not have"),
        ("run.models", 3,
         "machine.kernels: dgemm.models is of 3 models; there is one, or one for each CPU or socket of all nodes"),
        ("options.levels", [], "levels is empty; there is one link of each level, at least one"),
        ("options.levels", [[NAN, 0.0]], "levels.bandwidth_Bps is nan; it is a number from 1e-09 to 1e+300"),
        ("piece.covariance_terms", [10**8, 1],
         "machine.kernels[1].models[0].pieces[0].covariance_terms is 100000000; it is 0 to 8"),
        ("piece.where.low.m", NAN,
         "machine.kernels[1].models[0].pieces[0].where.low is above high, or no number; "
         "bounds are low <= high in m, n and k"),
        ("program.op.peer", 4, "ops.peer is 4; there are 4"),
        ("program.op.tag", 2**31, "ops.tag is 2147483648; there are 2147483648"),
        ("program.op.which", 2**32 - 1, "ops.which is 4294967295; it is 0 to 16777216"),
        ("program.op.m", NAN, "ops is nan; it is a number from 0 to 1e+15"),
        ("program.meeting.which", 2, "ops.which is 2; there are 2"),
        ("program.meeting.which", 1, "rank 0 calls bcast (app.py:1) of a communicator that it is not in"),
        ("program.communicators", [[0, 1, 2, 3], [3, 9]], "communicators is 9; it is 0 to 3"),
        ("program.communicators", [[0, 1, 2, 3], [3, 3]],
         "communicators is with rank 3 twice; each member is in it once"),
        ("program.part", [4, 2, 1], "rank_code.parts is of 2 operations from 4; there are 5"),
        ("stencil.iterations", -1, "iterations is -1; it is 1 to 2147483647"),
        ("stencil.cell_time_s", NAN, "cell_time_s is nan; it is a number from 0 to 1e+15"),
    ],
)  # fmt: skip
def test_what_ended_or_hung_the_process_is_refused_by_its_field(engine, place, value, message):
    assert engine([(place, value)]) == f"refused {message}"


@st.composite
def assignments(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Some values in some places."""
    made = []
    for place in draw(st.lists(st.sampled_from(sorted(PLACES)), min_size=1, max_size=5)):
        value = draw(
            st.one_of(
                st.sampled_from(values_for(PLACES[place])),
                st.integers(-(2**64), 2**64),
                st.integers(0, 64),
                st.floats(),
                st.lists(st.one_of(st.integers(0, 300), st.floats()), max_size=5),
            )
        )
        if not is_long(place, value):
            made.append((place, value))
    return made


@pytest.mark.slow
@settings(max_examples=300)
@given(assigned=assignments())
def test_no_values_end_the_process(engine: Engine, assigned: list[tuple[str, Any]]) -> None:
    check(engine(assigned))
