"""Tests of factors in observations: what was exchanged, what is confounded, and what stays out of the models."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from support_fit import kernel_rows, write_calibration

from lepaute.cli.main import main
from lepaute.errors import FitError, LepauteError
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.archive.setups.topology import Cache, data_caches
from lepaute.measure.design import full_factorial
from lepaute.measure.experiment.job import WRITTEN, _check_names
from lepaute.measure.fit import models
from lepaute.measure.fit.experiments import Findings, findings
from lepaute.measure.fit.observations.factors import FactorTest, LevelEffect, factor_tests, sentence
from lepaute.measure.observation_columns import COLUMNS_BY_NAME, factors_of

CONTENTS = ("random", "constant", "masked:40")


def content_calls(effect: float, *, blocks: int = 5, seed: int = 1) -> pandas.DataFrame:
    """Calls as the content probe of a calibration makes them; `constant` takes 1 + effect times as long."""
    rng = np.random.default_rng(seed)
    rows = []
    for block in range(blocks):
        for cpu in (0, 1):
            level = np.exp(rng.normal(0, 0.05))
            calls = [(size, content) for size in (500, 1000) for content in CONTENTS for _ in range(6)]
            for position, which in enumerate(rng.permutation(len(calls))):
                size, content = calls[which]
                noise = np.exp(0.02 * abs(rng.normal()))
                factor = 1 + effect if content == "constant" else 1.0
                duration = 2.5e-11 * size * size * 128 * level * noise * factor
                rows.append((position, size, size, 128, duration, cpu, block, content))
    frame = pandas.DataFrame(rows, columns=["design_row", "m", "n", "k", "duration_s", "cpu", "block", "content"])
    return frame.assign(
        kind="dgemm", position=0, kernel="dgemm", start_s=0.0, rank=0, attempt=0, disturbed=False, host="here",
        probe="dgemm_content", clock_cost_s=2e-8, warm=0,
    )  # fmt: skip


def process_calls(effect: float, *, blocks: int = 6, seed: int = 2) -> pandas.DataFrame:
    """Two processes a block, one pinned and one free, 20 calls each; processes differ by some per cent in any case."""
    rng = np.random.default_rng(seed)
    rows = []
    for process in range(2 * blocks):
        pinning = ("pinned", "free")[process % 2]
        level = np.exp(0.02 * rng.normal()) * (1 + effect if pinning == "free" else 1.0)
        for warm in rng.permutation([0, 1] * 10):
            duration_s = level * (1 - 0.1 * warm) * np.exp(0.005 * rng.normal())
            rows.append((process // 2, process, pinning, warm, 300, duration_s))
    return pandas.DataFrame(rows, columns=["block", "process", "pinning", "warm", "m", "duration_s"]).assign(
        kernel="dgemm", node="here", recorded_s=0.0, machine_changed=""
    )


def named(tests: tuple[FactorTest, ...]) -> dict[str, FactorTest]:
    return {test.factor: test for test in tests}


def test_a_data_dependent_dgemm_shows_itself() -> None:
    (test,) = factor_tests(content_calls(-0.05))
    assert (test.factor, test.kernel, test.reference, test.exchanged) == ("content", "dgemm", "random", "calls")
    assert test.matters
    assert (test.n, test.strata) == (5 * 2 * 2 * 18, 5 * 2 * 2)
    constant, masked = test.effects
    assert (constant.level, masked.level) == ("constant", "masked:40")
    assert constant.low < 0.95 < constant.high
    assert masked.low < 1 < masked.high
    assert sentence(test).startswith("dgemm takes 5.")
    assert "less time with content=constant than with content=random" in sentence(test)


def test_a_mean_that_differs_where_the_ranks_do_not_is_no_contradiction_left_unsaid() -> None:
    def told(p: float, low: float) -> str:
        effect = LevelEffect("16384", 0.65, low, 0.95)
        return sentence(FactorTest("eager", "x", "4096", (effect,), 0.0, p, p, 1999, False, "calls", 64, 16, ""))

    assert "(p = 0.50); 16384 differs in the mean, not in the ranks" in told(0.5, 0.46)
    assert told(0.04, 0.46).startswith("x takes 35.0 % less time with eager=16384")


def test_a_factor_of_processes_is_tested_by_processes_and_not_by_their_many_calls() -> None:
    # Every process differs from the next by more than its calls do: by calls, chance alone would look certain.
    for seed in range(5):
        test = named(factor_tests(process_calls(0.0, seed=seed)))["pinning"]
        assert (test.exchanged, test.n, test.strata, test.exact, test.permutations) == ("processes", 12, 6, True, 64)
        assert test.p_value >= 2 / 64  # the clearest of all arrangements, and its mirror image
    found = named(factor_tests(process_calls(0.2)))
    assert found["pinning"].p_value == 2 / 64
    (effect,) = found["pinning"].effects
    assert (effect.level, round(effect.ratio, 1)) == ("free", 1.2)
    assert (found["warm"].exchanged, found["warm"].matters) == ("calls", True)


def test_what_the_design_does_not_separate_is_said_to_be_confounded() -> None:
    one_each = process_calls(0.5, blocks=1)
    test = named(factor_tests(one_each))["pinning"]
    assert not test.matters
    assert "not testable: even the strongest effect would have p = 1.0 among 2 processes" in sentence(test)
    by_block = content_calls(0.3).assign(content=lambda part: np.where(part["block"] < 2, "random", "constant"))
    (test,) = factor_tests(by_block)
    assert test.exchanged == "processes"  # blocks on one core are what is exchanged
    assert test.strata == 2


def test_sizes_that_are_never_repeated_are_compared_in_classes() -> None:
    rng = np.random.default_rng(4)
    rows = 400
    sizes = np.floor(10 ** rng.uniform(1.5, 3, (3, rows))).astype(int)
    content = rng.choice(["random", "constant"], rows)
    duration = 3e-11 * sizes.prod(axis=0) * np.exp(0.05 * rng.normal(size=rows)) * np.where(content == "random", 1, 0.9)
    table = pandas.DataFrame({"m": sizes[0], "n": sizes[1], "k": sizes[2], "content": content, "duration_s": duration})
    (test,) = factor_tests(table.assign(kernel="dgemm", process=0))
    assert test.matters
    assert test.effects[0].ratio == pytest.approx(0.9, rel=0.03)
    assert test.n > 0.9 * rows


def test_a_column_is_a_factor_where_it_is_declared_so_and_nowhere_else() -> None:
    assert factors_of(content_calls(0.0)) == ("content",)  # warm has one level
    assert factors_of(process_calls(0.0)) == ("pinning", "warm")
    table = process_calls(0.0).assign(fan_speed=lambda frame: frame["block"] % 3)
    assert factors_of(table) == ("pinning", "warm")
    assert factors_of(table, design=("fan_speed",)) == ("pinning", "warm", "fan_speed")
    assert factors_of(table, design=None) == ("pinning", "warm", "fan_speed")  # a table that nobody declared


def experiment(path: Path, table: pandas.DataFrame, design: Mapping[str, Sequence[Any]] | None = None) -> Archive:
    """An archive of these observations; design: the levels of its factors."""
    with ArchiveWriter(path, {"kind": "experiment", "created": "2026-11-21T00:00:00+00:00", "warnings": []}) as archive:
        archive.add_table("observations/observations.parquet", table)
        if design is not None:
            archive.add_bytes("design.csv", full_factorial(design, seed=1).to_csv().encode())
    return Archive.open(path)


NEUTRAL = "size_of_cache"
#: Names of columns of the tables that fits, designs and archives work with.
INTERNAL = sorted({*COLUMNS_BY_NAME, *"archive cell count factor label level run unit value _value".split()})


def of_five_fold(path: Path, name: str, *, with_design: bool) -> Findings:
    """What is found of an experiment whose factor `name` has a five-fold effect, and another one none."""
    design = full_factorial({NEUTRAL: [1, 2], "policy": [0, 1]}, replications=10, blocks=2, seed=1)
    table = pandas.DataFrame({column: design.column(column) for column in design.columns})
    noise = np.random.default_rng(3).lognormal(0.0, 0.05, len(design))
    table = table.assign(gflops=np.where(table[NEUTRAL] == 1, 1.0, 5.0) * noise, design_row=range(len(table)))
    declared = {name: [1, 2], "policy": [0, 1]} if with_design else None
    (result,) = findings(experiment(path, table.rename(columns={NEUTRAL: name}), declared), column="gflops")
    return result


@pytest.mark.parametrize("with_design", [True, False])
def test_no_name_of_a_factor_has_a_meaning_of_its_own(tmp_path: Path, with_design: bool) -> None:
    """Named as a column of ours a factor gives the same answer, or it is said that it was not tested, or refused."""
    expected = of_five_fold(tmp_path / "neutral.zip", NEUTRAL, with_design=with_design)
    assert named(expected.factor_tests)[NEUTRAL].matters
    for name in INTERNAL:
        if name in ("block", *WRITTEN):
            with pytest.raises(LepauteError, match=name):
                _check_names("the design", full_factorial({name: [1, 2]}, blocks=2, seed=1).columns)
            continue
        found = of_five_fold(tmp_path / f"{name}.zip", name, with_design=with_design)
        if name in found.untested:
            assert not with_design or name in ("k", "m", "n", "size_bytes")
            assert f"{name} (" in str(found)
        else:
            renamed = [replace(test, factor=NEUTRAL) if test.factor == name else test for test in found.factor_tests]
            assert renamed == list(expected.factor_tests), name


def test_a_further_column_of_a_calibration_becomes_no_factor(tmp_path: Path) -> None:
    kernels = pandas.concat([kernel_rows(), content_calls(0.2)], ignore_index=True)
    kernels["fan_speed"] = kernels["block"] % 3
    fitted = models(Archive.open(write_calibration(tmp_path / "c.zip", kernels)))
    assert {test.factor for test in fitted.factor_tests} == {"content"}


def test_the_columns_of_the_design_are_the_factors_of_an_experiment(tmp_path: Path) -> None:
    """What is recorded beside them, such as a result of few values, is none unless it is asked for."""
    table = process_calls(0.0).assign(policy=lambda frame: frame["block"] % 2, page=lambda frame: frame["process"] % 5)
    for with_design, factors, expected in (
        (True, (), {"pinning", "warm", "policy"}),
        (True, ("page",), {"pinning", "warm", "policy", "page"}),
        (False, (), {"pinning", "warm", "policy", "page"}),
    ):
        design = {"pinning": ["pinned", "free"], "policy": [0, 1]} if with_design else None
        (result,) = findings(experiment(tmp_path / f"{len(factors)}{with_design}.zip", table, design), factors)
        assert {test.factor for test in result.factor_tests} == expected


@pytest.mark.slow
def test_a_calibration_tells_of_content_and_its_models_stay_the_same(tmp_path, output_of):
    plain = models(Archive.open(write_calibration(tmp_path / "plain.zip", kernel_rows())))
    both = pandas.concat([kernel_rows(), content_calls(-0.1)], ignore_index=True)
    path = write_calibration(tmp_path / "content.zip", both)
    fitted = models(Archive.open(path))
    assert fitted.kernels == plain.kernels
    assert plain.factor_tests == ()
    (test,) = fitted.factor_tests
    assert test.matters
    assert any("less time with content=constant" in note and "random content" in note for note in fitted.notes)
    told = output_of("fit", path, "-o", tmp_path / "p.yaml", "--details")
    assert "less time with content=constant than with content=random" in told
    assert "masked:40" in told


def test_an_experiment_without_factors_or_durations_is_refused_in_one_line(tmp_path: Path) -> None:
    nothing = pandas.DataFrame({"size_bytes": [1, 2], "duration_s": [1.0, 2.0]})
    for number, table in enumerate((nothing, nothing.drop(columns="duration_s"), nothing.iloc[:0])):
        archive = experiment(tmp_path / f"{number}.zip", table)
        with pytest.raises(FitError, match="there is nothing to fit"):
            findings(archive)
        assert main(["fit", str(archive.path)]) == 2


OF_ALLTOALL = {"size_bytes": [8, 4096, 1 << 20], "ranks": [2, 4], "threads": [1, 2]}


def alltoall_table(rate_at_two: float = 1.3) -> pandas.DataFrame:
    """An experiment of three factors with own results: a time that depends on the size, a rate on the threads."""
    rng = np.random.default_rng(4)
    design = full_factorial(OF_ALLTOALL, replications=8, seed=1)
    table = pandas.DataFrame({name: design.column(name) for name in design.columns})
    noise = rng.lognormal(0, 0.02, (2, len(table)))
    return table.assign(
        design_row=range(len(table)),
        alltoall_s=(1e-6 + table["size_bytes"] * 1e-9) * noise[0],
        gflops=60.0 * np.where(table["threads"] == 2, rate_at_two, 1.0) * noise[1],
        recorded_s=1.8e9 + np.arange(len(table)),
    )


def test_any_recorded_column_can_be_compared_and_threads_are_a_factor_of_a_design_that_has_them(tmp_path, capsys):
    archive = experiment(tmp_path / "e.zip", alltoall_table(), OF_ALLTOALL)
    (found,) = findings(archive, column="gflops")
    tests = named(found.factor_tests)
    assert set(tests) == {"ranks", "threads"}  # the size is a size
    assert tests["threads"].effects[0].ratio == pytest.approx(1.3, rel=0.02)
    assert [test.factor for test in found.factor_tests if test.matters] == ["threads"]
    assert "threads matters" in repr(found)
    assert "<table>" in found._repr_html_()
    assert found.to_frame()["column"].tolist() == ["gflops", "gflops"]
    assert main(["fit", str(archive.path), "--column", "gflops"]) == 0
    assert "gflops is 29.7 % higher with threads=2 than with threads=1" in capsys.readouterr().out


def test_a_size_is_tested_where_it_is_named(tmp_path: Path) -> None:
    archive = experiment(tmp_path / "e.zip", alltoall_table(), OF_ALLTOALL)
    (found,) = findings(archive, factors=["size_bytes"], column="alltoall_s")
    matters = {test.factor: test.matters for test in found.factor_tests}
    assert matters == {"size_bytes": True, "ranks": False, "threads": False}
    by_size = named(found.factor_tests)["size_bytes"]
    assert by_size.effects[-1].ratio == pytest.approx((1e-6 + 2**20 * 1e-9) / 1.008e-6, rel=0.05)
    assert re.search(r"alltoall_s is 10\d\d times as high with size_bytes=1048576 as with", str(found))


def test_what_cannot_be_compared_is_told_with_what_there_is(tmp_path: Path) -> None:
    archive = experiment(tmp_path / "e.zip", alltoall_table(), OF_ALLTOALL)
    with pytest.raises(FitError, match=r"no .* column duration_s; .*--column\): alltoall_s, gflops$"):
        findings(archive)
    with pytest.raises(FitError, match=r"no .* column size;"):
        findings(archive, factors=["size"], column="gflops")
    with pytest.raises(FitError, match="has no column 'duration_s'; it has size_bytes"):
        factor_tests(alltoall_table(), factors=["ranks"])
    only_sizes = experiment(tmp_path / "s.zip", alltoall_table()[["size_bytes", "alltoall_s"]], OF_ALLTOALL)
    with pytest.raises(FitError, match=r"no factor has several levels; .* but sizes"):
        findings(only_sizes, column="alltoall_s")


TOPOLOGY = """<topology><object type="Machine"><object type="Package">
<object type="L3Cache" cache_size="33554432" depth="3" cache_type="0">{cores}</object></object></object></topology>"""
CORE = """<object type="L2Cache" cache_size="1048576" depth="2" cache_type="0">
<object type="L1Cache" cache_size="{l1}" depth="1" cache_type="1">
<object type="L1iCache" cache_size="65536" depth="1" cache_type="2"><object type="Core">
<object type="PU" os_index="{first}"/><object type="PU" os_index="{second}"/></object></object></object></object>"""


def test_the_caches_of_a_thread_are_those_on_its_way_to_memory() -> None:
    cores = CORE.format(l1=32768, first=0, second=2) + CORE.format(l1=49152, first=1, second=3)
    text = TOPOLOGY.format(cores=cores)
    assert data_caches(text, 2) == (Cache(1, 32768, 2), Cache(2, 1 << 20, 2), Cache(3, 32 << 20, 4))
    assert data_caches(text, 1)[0] == Cache(1, 49152, 2)
    assert data_caches(text, 9) == ()
    assert data_caches("no document", 0) == ()
    assert data_caches(text.replace('cache_size="49152"', ""), 1) == (Cache(2, 1 << 20, 2), Cache(3, 32 << 20, 4))


@pytest.mark.parametrize(
    ("levels", "ordered"),
    [
        ((65536, 1048576, 8388608), ["65536", "1048576", "8388608"]),
        ((0.5, 2.0, 16.0), ["0.5", "2", "16"]),
        (("64KiB", "1MiB", "512 KiB"), ["64KiB", "512 KiB", "1MiB"]),
        (("1e-3", "-1", "1e-5"), ["-1", "1e-5", "1e-3"]),
        (("node-10", "node-9", "node-100"), ["node-9", "node-10", "node-100"]),
        ((False, True), ["False", "True"]),
    ],
)
def test_levels_are_ordered_as_numbers_and_the_least_is_the_reference(levels, ordered):
    # As text, 1048576 came before 65536 and was what the others were compared with.
    rng = np.random.default_rng(5)
    column = [levels[i] for i in rng.integers(0, len(levels), 200)]
    table = pandas.DataFrame({"chunk": column, "duration_s": rng.lognormal(0, 0.1, 200)})
    (test,) = factor_tests(table, factors=("chunk",))
    assert [test.reference, *(effect.level for effect in test.effects)] == ordered
