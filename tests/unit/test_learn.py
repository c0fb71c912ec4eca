"""Applications learnt from recordings of known ones: the same calls on other numbers of ranks, and what costs miss."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support_learn import record

import lepaute as lp
from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.simulate.learn import find, learn, written
from lepaute.simulate.learn.folding import fold
from lepaute.simulate.learn.grammar import balanced_sides
from lepaute.simulate.learn.shaping import shaped


class Halo(lp.Application):
    """Neighbours on a balanced grid, blocks of n x n cells."""

    ranks: int = 4
    n: int = 960
    work = lp.Cost(1e-8)

    def run(self, me: Any) -> Any:
        grid = me.dims_create(2)
        here = me.cartesian(grid)
        py, px = grid
        moves = ((0, -1, self.n // px), (0, 1, self.n // px), (1, -1, self.n // py), (1, 1, self.n // py))
        ends = [(here.shift(dimension, by), 8 * cells) for dimension, by, cells in moves]
        for step in me.steps(12):
            yield me.exchange([(rank, size) for rank, size in ends if rank is not None])
            yield me.compute(self.work, self.n**2 / me.size)
            if step % 4 == 3:
                yield me.allreduce(8)


class Sweep(lp.Application):
    """A wavefront from one corner."""

    ranks: int = 4
    work = lp.Cost(1e-4)

    def run(self, me: Any) -> Any:
        here = me.cartesian(me.dims_create(2))
        for _ in me.steps(6):
            for dimension in (0, 1):
                if here.shift(dimension, -1) is not None:
                    yield me.receive(here.shift(dimension, -1), dimension)
            yield me.compute(self.work, 4 / me.size)
            for dimension in (0, 1):
                if here.shift(dimension, 1) is not None:
                    yield me.send(here.shift(dimension, 1), 4096 // here.grid[1 - dimension], dimension)
        yield me.bcast(8, me.size - 1)


class Rows(lp.Application):
    """Transposes within rows and columns."""

    ranks: int = 4
    work = lp.Cost(1e-3)

    def run(self, me: Any) -> Any:
        py, px = me.dims_create(2)
        row = yield me.split(me.rank // px, me.rank)
        column = yield me.split(me.rank % px, me.rank)
        for _ in me.steps(5):
            yield me.compute(self.work, 8 / me.size)
            yield row.alltoall(2**20 // (me.size * px))
            yield column.alltoall(2**20 // (me.size * py))


class Doubling(lp.Application):
    """An exchange by recursive doubling, its size doubled, too."""

    ranks: int = 4

    def run(self, me: Any) -> Any:
        for _ in me.steps(3):
            for level in range((me.size - 1).bit_length()):
                yield me.exchange([(me.rank ^ 2**level, 64 * 2**level)])


class Shifted(lp.Application):
    """A ring of all pairs: in the i-th round the i-th rank behind."""

    ranks: int = 4

    def run(self, me: Any) -> Any:
        for _ in me.steps(2):
            for distance in range(1, me.size):
                source = yield me.irecv((me.rank - distance) % me.size, 1)
                sent = yield me.isend((me.rank + distance) % me.size, 6400 // me.size, 1)
                yield me.waitall([source, sent])


class Collectives(lp.Application):
    """Of all kinds, some of which go on beside computing."""

    ranks: int = 4
    work = lp.Cost(1e-4)

    def run(self, me: Any) -> Any:
        for _ in me.steps(3):
            begun = [(yield me.start(me.allreduce(8))), (yield me.start(me.alltoallv(4096 // me.size)))]
            yield me.compute(self.work)
            yield me.waitall(begun)
            yield me.reduce_scatter(8192 // me.size)
            yield me.scan(16)
            yield me.allgatherv(24)


def recorded(program: Callable[..., lp.Application], folder: Path, ranks: Any, **more: Any) -> list[Path]:
    return [record(program(ranks=count), folder / f"r{count}.parquet", **more) for count in ranks]


@pytest.mark.parametrize("program", [Halo, Sweep, Rows, Doubling, Shifted, Collectives])
@pytest.mark.parametrize("sites", [False, True])
def test_a_learnt_program_makes_the_calls_of_a_larger_run(program: Any, sites: bool, tmp_path: Path) -> None:
    """Learnt from 4 to 16 ranks, it makes each call of 64 and of 32: what is equal there is no accident of 16."""
    made = learn(recorded(program, tmp_path, (4, 8, 16), sites=sites), tmp_path / "made.py")
    for ranks in (32, 64):
        truth = record(program(ranks=ranks), tmp_path / "truth.parquet", sites=sites)
        checked = lp.check(made(ranks=ranks), truth)
        assert checked.same, checked.text


def test_a_parameter_that_varies_becomes_a_field(tmp_path: Path) -> None:
    sizes = {4: 480, 8: 960, 16: 1440}
    traces = [record(Halo(ranks=ranks, n=n), tmp_path / f"r{ranks}.parquet") for ranks, n in sizes.items()]
    made = learn(traces, tmp_path / "made.py", parameters=[{"n": n} for n in sizes.values()])
    truth = record(Halo(ranks=64, n=4800), tmp_path / "truth.parquet")
    assert lp.check(made(ranks=64, n=4800), truth).same
    assert not lp.check(made(ranks=64, n=960), truth).same


class Ghosts(lp.Application):
    """Sides of blocks of 64 x 64 points with one more at both ends."""

    ranks: int = 4

    def run(self, me: Any) -> Any:
        grid = me.dims_create(2)
        here = me.cartesian(grid)
        ends = [(d, by, 8 * (64 // grid[1 - d] + 2)) for d, by in ((0, -1), (0, 1), (1, -1), (1, 1))]
        for _ in me.steps(3):
            places = [(here.shift(d, by), size) for d, by, size in ends]
            yield me.exchange([(rank, size) for rank, size in places if rank is not None])


def test_parts_of_a_length_that_only_sizes_tell(tmp_path: Path) -> None:
    made = learn(recorded(Ghosts, tmp_path, (2, 4, 8, 16, 32)), tmp_path / "made.py")
    assert "8 * (64 // px + 2)" in (tmp_path / "made.py").read_text()
    assert lp.check(made(ranks=64), record(Ghosts(ranks=64), tmp_path / "truth.parquet")).same


def test_what_repeats_itself_becomes_a_function() -> None:
    block = ["if up is not None:", "    yield me.send(up, 8)", *(f"yield me.bcast({at})" for at in range(20))]
    functions, body = shaped(
        [*block, "yield me.barrier()", "for i in range(9):", *(f"    {line}" for line in block)], lambda _: "swap"
    )
    assert functions == ["def swap():", *(f"    {line}" for line in block), ""]
    assert body == ["yield from swap()", "yield me.barrier()", "for i in range(9):", "    yield from swap()"]


def test_runs_on_the_same_ranks_share_their_communicators(tmp_path: Path) -> None:
    traces = [*recorded(Rows, tmp_path, (4, 8, 16)), record(Rows(ranks=8), tmp_path / "again.parquet", seed=2)]
    made = learn(traces, tmp_path / "made.py")
    assert lp.check(made(ranks=64), record(Rows(ranks=64), tmp_path / "truth.parquet")).same


@pytest.mark.parametrize("name", ["ranks", "size", "lp", "run", "collectives", "class", "before_compute", "a b"])
def test_parameters_do_not_take_names_of_the_class(name: str, tmp_path: Path) -> None:
    traces = recorded(Halo, tmp_path, (4, 8))
    with pytest.raises(InputError, match="take another name"):
        learn(traces, tmp_path / "made.py", parameters=[{name: 1}, {name: 2}])


@pytest.mark.parametrize(("values", "status"), [("480,960,1440,1920", 0), ("480,960,1440", 1)])
def test_a_recording_to_check_has_its_parameter_last(values: str, status: int, tmp_path: Path) -> None:
    sizes = {4: 480, 8: 960, 16: 1440, 32: 1920}
    traces = [str(record(Halo(ranks=ranks, n=n), tmp_path / f"r{ranks}.parquet")) for ranks, n in sizes.items()]
    words = ["learn", *traces[:3], "-o", str(tmp_path / "made.py"), "--check", traces[3], "--parameter", f"n={values}"]
    assert main(words) == status


def test_the_cost_of_computing_is_that_of_the_program(tmp_path: Path) -> None:
    """Of 1e-8 s a cell, cells being shared: the same at 1,024 ranks, where it is not recorded."""
    findings = find(recorded(Halo, tmp_path, (4, 8, 16)))
    (model,) = [model for model in findings.costs.values() if model.share > 0.5]
    assert model.form.ranks == -1.0
    assert model.seconds(1024, []) == pytest.approx(1e-8 * 960**2 / 1024, rel=0.01)


def test_intervals_of_costs_hold_the_truth(tmp_path: Path) -> None:
    """Of 40 programs with noise, 95 % of the predictions at 4 times the largest recording are within the stated error.

    At least 33 of 40 would be inside with probability 0.999 if 95 % are (binomial).
    """
    inside = 0
    for seed in range(40):
        findings = find(recorded(Halo, tmp_path, (4, 8, 16), noise=0.05, seed=seed))
        (model,) = [model for model in findings.costs.values() if model.share > 0.5]
        truth_s = 1e-8 * 960**2 / 64 * (1.0 + 0.05 * np.sqrt(2.0 / np.pi))
        half = 1.96 * np.hypot(model.error, 2.0 * model.slope)
        inside += abs(np.log(model.seconds(64, []) / truth_s)) < half
    assert inside >= 33


def test_peers_without_a_rule_are_refused_with_what_would_help(tmp_path: Path) -> None:
    class Random(lp.Application):
        ranks: int = 4

        def run(self, me: Any) -> Any:
            order = np.random.default_rng(7).permutation(me.size).tolist()
            place = order.index(me.rank)
            for _ in me.steps(10):
                yield me.exchange([(order[place ^ 1], 80)])

    with pytest.raises(InputError, match="no rule holds in every recording for the peer of"):
        learn(recorded(Random, tmp_path, (4, 8, 16)), tmp_path / "made.py")
    assert not (tmp_path / "made.py").exists()


def test_recordings_of_one_number_of_ranks_are_refused(tmp_path: Path) -> None:
    (trace,) = recorded(Rows, tmp_path, (4,))
    with pytest.raises(InputError, match="all recordings are of 4 ranks"):
        learn([trace, trace], tmp_path / "made.py")
    with pytest.raises(InputError, match="two or more"):
        learn(str(trace), tmp_path / "made.py")


def test_rules_that_part_beyond_the_recordings_are_named(tmp_path: Path) -> None:
    """On 4 and 16 ranks both sides of the grid are the same numbers: 32 ranks tell them from each other."""
    findings = find(recorded(Halo, tmp_path, (4, 16)))
    rules = [rule for step in findings.learnt.root.steps() for rule in step.rules.values()]
    assert {rule.decided_at for rule in rules if rule.rivals} == {32}


def test_far_extrapolation_widens_the_interval_and_is_not_comparable(tmp_path: Path) -> None:
    traces = recorded(Halo, tmp_path, (4, 8, 16), noise=0.3)
    made = written(find(traces), tmp_path / "made.py")
    near, far = (lp.predict(made(ranks=ranks), "dahu", runs=8, parts=True) for ranks in (16, 512))
    assert "extrapolation" in far.parts.relative_sd
    assert "extrapolation" not in near.parts.relative_sd
    assert "4 to 16 ranks recorded, 512 asked" in " ".join(far.warnings)


def test_loops_are_folded_innermost_first() -> None:
    body = [0, 1, 1, 2]
    folded = fold(np.array([*(body * 5), 3, *(body * 2)]), np.zeros(29, dtype="int64"))
    assert len(folded.top) == 3
    assert folded.top[0] == folded.top[2]
    assert folded.top[1] == 3


def test_folding_a_million_calls_is_quick() -> None:
    """Ten rounds of folding over arrays, not a walk over calls: as many rounds for a million as for a thousand."""
    body = np.array([0, 1, 1, 2, 3, 3, 3, 4])
    rounds = [len(fold(np.tile(body, count), np.zeros(8 * count, dtype="int64")).levels) for count in (125, 125_000)]
    assert rounds[0] == rounds[1]


@pytest.mark.parametrize(("ranks", "sides"), [(12, (4, 3)), (16, (4, 4)), (24, (6, 4)), (7, (7, 1))])
def test_grids_are_balanced(ranks: int, sides: tuple[int, ...]) -> None:
    assert balanced_sides(ranks, 2) == sides
