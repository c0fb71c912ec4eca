"""What all applications share: one run in another process, the registry, agreement with the core, the orchestrator."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import lepaute as lp
from lepaute.errors import InputError
from lepaute.kit.options import flag_of, options_of
from lepaute.simulate.application import Application
from lepaute.simulate.apps import APPLICATIONS, application_class
from lepaute.simulate.behaviour import core_parameters
from lepaute.simulate.native import Native
from lepaute.simulate.smpi.emulate import Smpi

HPL = lp.Hpl(n=1500, p=2, q=3)


def example_of(name: str) -> Application:
    """The application that the example of the registry describes."""
    cls, words = application_class(name), APPLICATIONS[name].example.split()
    given = dict(zip(words[::2], words[1::2], strict=True))
    flags = {field: flag_of(cls, field) for field in options_of(cls)}
    return cls(**{f: (options_of(cls)[f].parse or float)(given[flag]) for f, flag in flags.items() if flag in given})


ALL = {"hpl": HPL} | {name: example_of(name) for name in APPLICATIONS if name not in ("hpl", "trace")}
STENCIL = ALL["stencil"]


@pytest.mark.parametrize("application", ALL.values(), ids=ALL)
def test_a_run_in_another_process_is_the_one_of_the_prediction(application: Application) -> None:
    predicted = lp.predict(application, "dahu", runs=3, seed=7)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        runs = list(pool.map(lp.simulate_one, [application] * 3, ["dahu"] * 3, [7, 8, 9]))
        of_value = pool.submit(lp.simulate_one, application, lp.load_platform("dahu"), 8).result()
    assert [run.time_s for run in runs] == [run.time_s for run in predicted.run_list]
    assert of_value.time_s == runs[1].time_s
    assert runs[0] == predicted.first or runs[0].kernels == predicted.first.kernels
    assert runs[0].breakdown.by_rank_s.shape == (application.ranks, 6)


@pytest.mark.parametrize("name", ALL)  # a replay has no parameters of its own in the core
def test_options_and_the_core_agree(name: str) -> None:
    application = ALL[name]
    parameters = core_parameters(application)  # raises where choices differ
    for field_name, described in options_of(application_class(name)).items():
        if described.choices:
            assert getattr(parameters, field_name) == getattr(application, field_name)


def test_an_option_that_the_core_does_not_have_is_refused_and_not_ignored() -> None:
    @dataclass(frozen=True)
    class Hpl:
        n: int = 1
        telepathy: bool = True

    with pytest.raises(ImportError, match="the core has no telepathy in HplParameters"):
        core_parameters(Hpl())  # type: ignore[arg-type]


def test_rates_are_those_of_the_application() -> None:
    hpl, stencil = lp.predict(HPL, "dahu", runs=2), lp.predict(STENCIL, "dahu", runs=2)
    assert hpl.rate == hpl.rate_gflops
    assert stencil.to_dict()["rate_cells_per_s"] == stencil.rate.to_dict()
    with pytest.raises(AttributeError, match="stencil has no rate in Gflop/s"):
        stencil.rate_gflops  # noqa: B018 - reading it raises
    assert list(stencil.runs.columns) == ["seed", "time_s", "rate_cells_per_s"]


def test_an_engine_says_what_it_cannot_simulate(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="solver has no native form; emulate it by SMPI"):
        lp.predict(lp.Program(tmp_path / "solver"), "dahu", engine=Native())
    with pytest.raises(InputError, match="stencil is not a program that SMPI could run"):
        lp.predict(STENCIL, "dahu", engine=Smpi())
    with pytest.raises(InputError, match=r"SMPI needs a program to emulate hpl; give Smpi\(program="):
        lp.predict(HPL, "dahu", engine=Smpi())
    with pytest.raises(InputError, match="ranks is 0; a program has at least one rank"):
        lp.Program(tmp_path / "solver", ranks=0)
