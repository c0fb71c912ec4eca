"""What is asked for from Python is done, or refused in one line; never silently something else."""

import numpy as np
import pytest

import lepaute as lp
from lepaute.errors import InputError
from lepaute.simulate import Hpl, Layers, Mapping, Stencil, predict
from lepaute.watch.judging.judge import vectors_asked


@pytest.mark.parametrize(
    ("call", "field", "values"),
    [
        (lambda kind: Mapping(kind=kind), "it must be one of sequential, random, rankfile", ("Random", "foo", None, 3)),
        (lambda seed: Mapping("random", seed=seed), "the seed of the mapping is", (1.5, "1", -1, 2**64, True)),
        (lambda cells: Stencil(cells=cells), "^cells is ", ((64.5, 64, 64), (64, 64), "abc", 64, (64, 64, None))),
        (lambda runs: predict(Hpl(n=100), "dahu", runs=runs), "^runs is ", (1.5, "2")),
        (lambda seed: predict(Hpl(n=100), "dahu", seed=seed), "^seed is ", (0.5, True)),
        (lambda repeat: predict(Hpl(n=100), "dahu", repeat=repeat), "^repeat is ", ("x",)),
    ],
)
def test_a_value_of_another_kind_is_refused_by_the_name_of_its_argument(call, field, values) -> None:
    for value in values:
        with pytest.raises(InputError, match=field):
            call(value)


@pytest.mark.parametrize("names", [("nois",), ("noise", "day")])
def test_layers_of_other_names_are_refused_not_switched_off(names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="there is no layer"):
        Layers.only(*names)
    with pytest.raises(InputError, match="there is no layer"):
        Layers.without(names)
    with pytest.raises(InputError, match="one text; give a list of them"):
        Layers.without("noise")
    assert Layers.only("noise").off == (
        "coefficients", "days", "discrepancy", "network", "overheads", "collectives", "extrapolation", "own_code",
    )  # fmt: skip


def test_numbers_of_numpy_are_numbers() -> None:
    ours = Hpl(n=1000, nb=64, p=1, q=2)
    theirs = Hpl(n=np.int64(1000), nb=np.int32(64), p=np.uint8(1), q=np.int16(2))  # type: ignore[arg-type]
    assert theirs == ours
    assert type(theirs.n) is int
    assert Stencil(cells=np.array([8, 8, 8]), cell_time_s=1e-9).cells == (8, 8, 8)  # type: ignore[arg-type]
    assert Stencil(cells=(8, 8, 8), cell_time_s=np.float32(0.5)).cell_time_s == 0.5  # type: ignore[arg-type]
    found = predict(theirs, "dahu", runs=np.int64(2), seed=np.uint32(3))  # type: ignore[arg-type]
    assert found.to_dict()["time_s"] == predict(ours, "dahu", runs=2, seed=3).to_dict()["time_s"]
    assert found.seed == 3


def test_a_text_where_texts_are_due_is_one_or_is_refused() -> None:
    with pytest.raises(InputError, match=r"arguments is '16 2', one text; give a list of them"):
        lp.emulate("/bin/true", "dahu", ranks=1, arguments="16 2")
    assert vectors_asked("policy") == [("policy",)]
