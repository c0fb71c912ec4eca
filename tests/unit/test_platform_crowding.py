"""Crowding and sockets of a platform: what is read, refused and predicted."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lepaute.errors import PlatformError
from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate.machine.mapping import Mapping, Slot
from lepaute.simulate.platform.io import override, parse_platform
from lepaute.simulate.platform.schema import Platform, platform_text
from lepaute.simulate.platform.summary import summary

SMALL = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"
TABLE = [[1 / 3, 0.2], [1.0, 0.3]]
NONE = Layers(**dict.fromkeys(Layers.__dataclass_fields__, False))


def platform(crowding: object = None, **nodes: object) -> Platform:
    """One node of eight cores whose only kernel is dgemm, 0.1 ns for each product."""
    content = yaml.safe_load(SMALL.read_text())
    content["nodes"] = {"count": 1, "first_number": 1, "cores": 8, "cpus": 8, **nodes}
    content["kernels"] = [{"kernel": "dgemm", "pieces": [{"mean": {"mnk": 1e-10}}], "crowding": crowding}]
    content["days"] = None
    return Platform.model_validate(content)


def refusal(field: str, value: str, base: Platform) -> str:
    with pytest.raises(PlatformError) as caught:
        override(base, {field: value})
    return str(caught.value)


def compute_s(on: Platform, cores: list[int], threads: int = 1) -> float:
    """Seconds in dgemm of two ranks whose first cores are these."""
    mapping = Mapping(slots=tuple(Slot(0, core) for core in cores))
    hpl = Hpl(n=512, nb=64, p=1, q=len(cores), threads_per_rank=threads)
    return predict(hpl, on, runs=1, mapping=mapping, layers=NONE).kernel_time_s["dgemm"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[]", "kernels[0].crowding is an empty table"),
        ("[0.1, 0.2]", "kernels[0].crowding[0] is 0.1; a number, or a table [[share, increase], ...] is expected"),
        ("[[0.5, 0.1], [0.5, 0.2]]", "kernels[0].crowding[1] has the share 0.5; shares rise from row to row"),
        ("[[1.5, 0.1]]", "kernels[0].crowding[0] has the share 1.5; shares rise"),
        ("[[0.5, -1]]", "kernels[0].crowding[0] is -1; an increase is above -1"),
        ("-2", "kernels[0].crowding is -2; an increase is above -1"),
        ("much", "kernels[0].crowding is much; a number, or a table"),
        ("[[0.5, .nan]]", "kernels[0].crowding[0] is [0.5, nan]; a number, or a table"),
        ("true", "kernels[0].crowding is True; a number, or a table"),
    ],
)
def test_what_is_no_crowding_is_refused(value: str, said: str) -> None:
    assert said in refusal("kernels[0].crowding", value, platform())


def test_a_table_is_written_and_read_back_and_told() -> None:
    written = platform(TABLE, sockets=2)
    assert parse_platform(platform_text(written)) == written
    assert "8 cores on 8 CPUs (modulo) in 2 sockets" in summary(written)
    assert "+20.0 % when 33 % of the others compute, +30.0 % when all of the others compute" in summary(written)


@pytest.mark.parametrize(
    ("cores", "threads", "increase"),
    [([0, 4], 1, 0.0), ([0, 3], 1, 0.2), ([0, 2], 2, 0.3), ([0, 4], 4, 0.0), ([0, 1], 1, 0.2)],
)
def test_only_cores_of_the_ranks_socket_crowd_it_as_many_as_ranks_have_threads(cores, threads, increase):
    # Two sockets of four cores: one of three others, both others of a rank of two threads, none of one of four.
    on = platform(TABLE, sockets=2)
    model: dict[str, Any] = on.kernels[0].model_dump() | {"threads": threads}
    on = Platform.model_validate(on.model_dump() | {"kernels": [model]})
    alone = Platform.model_validate(on.model_dump() | {"kernels": [model | {"crowding": None}]})
    ratio = compute_s(on, cores, threads) / compute_s(alone, cores, threads)
    assert ratio == pytest.approx(1.0 + increase, rel=1e-12)


def test_coefficients_of_a_socket_are_those_of_its_cpus() -> None:
    on = platform(sockets=2)
    piece = on.kernels[0].pieces[0].model_dump()
    piece["per_cpu"] = {"columns": ["node", "socket", "mnk"], "rows": [[1, 1, 2e-10]]}
    on = Platform.model_validate(on.model_dump() | {"kernels": [{"kernel": "dgemm", "pieces": [piece]}]})
    assert compute_s(on, [5]) == pytest.approx(2 * compute_s(on, [3]), rel=1e-12)
    assert "1 sockets have their own" in summary(on)
    said = refusal("kernels[0].pieces[0].per_cpu.rows", "[[1, 2, 2e-10]]", on)
    assert "is for node 1, socket 2; valid are nodes 1 to 1 with sockets 0 to 1" in said


def test_cpus_of_a_socket_share_the_error_of_its_coefficients() -> None:
    on = platform(sockets=2)
    piece = on.kernels[0].pieces[0].model_dump() | {"covariance": {"terms": ["mnk"], "matrix": [[1e-22]]}}
    piece["per_cpu"] = {"columns": ["node", "socket", "mnk"], "rows": [[1, 0, 1e-10], [1, 1, 1e-10]]}
    on = Platform.model_validate(on.model_dump() | {"kernels": [{"kernel": "dgemm", "pieces": [piece]}]})

    def drawn_s(core: int) -> float:
        mapping = Mapping(slots=(Slot(0, core),))
        return predict(Hpl(n=512, nb=64, p=1, q=1), on, runs=1, mapping=mapping).time_s.mean

    assert drawn_s(0) == drawn_s(3)
    assert drawn_s(0) != drawn_s(4)
