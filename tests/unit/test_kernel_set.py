"""The choice of the BLAS kernels, and which of them a verification with a platform file runs."""

import json
from pathlib import Path

import pytest

from lepaute.cli import verify_site
from lepaute.cli.verify_site import kernels_here, opened_site, where_of
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.kernel_set import KernelSet, Timing, candidates, choose_kernel_set, decide
from lepaute.measure.schedulers import Request
from lepaute.measure.verify.machine import SeenNode, check_same_machine
from lepaute.measure.verify.real_run import HplProgram
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.schema import Blas

AVX2 = frozenset({"avx", "avx2", "fma"})
AVX512 = AVX2 | {"avx512f", "avx512dq", "avx512bw", "avx512vl"}


def timer_of(rates: dict[str | None, list[float]], names: dict[str | None, str] | None = None):  # type: ignore[no-untyped-def]
    """A timer that gives each kernel set its rates one after the other, the last for ever; absent ones crash."""
    calls: dict[str | None, int] = {}

    def timer(coretype: str | None) -> Timing | None:
        if coretype not in rates:
            return None
        number = calls.get(coretype, 0)
        calls[coretype] = number + 1
        rate = rates[coretype][min(number, len(rates[coretype]) - 1)]
        name = (names or {}).get(coretype, coretype or "Prescott")
        return Timing(coretype, name, "OpenBLAS test", rate)

    return timer


def test_only_kernels_whose_instructions_the_processor_has_are_candidates() -> None:
    assert "SkylakeX" not in candidates(AVX2)
    assert candidates(AVX2)[:2] == ["Zen", "Haswell"]
    assert candidates(AVX512)[0] == "SkylakeX"
    assert candidates(AVX512 - {"avx512vl"}) == candidates(AVX2)  # one missing instruction would crash
    assert candidates(frozenset({"sse2"})) == []


@pytest.mark.parametrize(("rate", "kept"), [(79.9, False), (80.1, True), (120.0, True)])
def test_the_default_is_left_only_when_slower_by_more_than_a_fifth(rate: float, kept: bool) -> None:
    default, other = Timing(None, "A", "", rate), Timing("B", "B", "", 100.0)
    assert (decide(default, [other]) is default) is kept


def test_a_fallback_to_old_kernels_is_replaced_with_a_warning_that_says_why() -> None:
    timer = timer_of({None: [20.0], "SkylakeX": [93.0], "Zen": [60.0], "Haswell": [60.0]})
    chosen = choose_kernel_set(environment={}, flags=AVX512, timer=timer)
    assert (chosen.core_name, chosen.coretype_env, chosen.gflops) == ("SkylakeX", "SkylakeX", 93.0)
    (warning,) = chosen.warnings
    assert "Prescott kernels here (20.0 Gflop/s a core) where SkylakeX reach 93.0" in warning
    assert "OPENBLAS_CORETYPE=SkylakeX" in warning


def test_a_good_default_also_one_timed_again_is_kept_and_what_crashes_or_is_ignored_is_not_taken() -> None:
    timer = timer_of({None: [90.0], "SkylakeX": [93.0], "Zen": [60.0]}, {None: "Cooperlake"})
    chosen = choose_kernel_set(environment={}, flags=AVX512, timer=timer)
    assert (chosen.core_name, chosen.coretype_env, chosen.warnings) == ("Cooperlake", None, ())
    timer = timer_of({None: [40.0, 92.0], "SkylakeX": [93.0]}, {None: "Cooperlake"})
    chosen = choose_kernel_set(environment={}, flags=AVX512, timer=timer)
    assert (chosen.coretype_env, chosen.gflops) == (None, 92.0)
    # Zen crashes (absent); SkylakeX is ignored by a library built for one set: it reports the default's name.
    timer = timer_of({None: [20.0], "SkylakeX": [99.0]}, {None: "Prescott", "SkylakeX": "Prescott"})
    assert choose_kernel_set(environment={}, flags=AVX512, timer=timer).coretype_env is None


def test_the_users_own_choice_is_kept_and_called_slow_and_without_openblas_the_package_is_named() -> None:
    timer = timer_of({"Prescott": [20.0], "SkylakeX": [93.0]})
    chosen = choose_kernel_set(environment={"OPENBLAS_CORETYPE": "Prescott"}, flags=AVX512, timer=timer)
    assert (chosen.coretype_env, chosen.gflops) == ("Prescott", 20.0)
    assert "kept, because OPENBLAS_CORETYPE=Prescott is set" in chosen.warnings[0]
    with pytest.raises(EnvironmentProblem, match="apt-get install libopenblas-dev"):
        choose_kernel_set(environment={}, flags=AVX512, timer=timer_of({}))
    with pytest.raises(EnvironmentProblem, match="unset OPENBLAS_CORETYPE"):
        choose_kernel_set(environment={"OPENBLAS_CORETYPE": "No"}, flags=AVX512, timer=timer_of({}))


@pytest.fixture
def asked(monkeypatch):
    """What OPENBLAS_CORETYPE the kernels were asked for with; the Zen ones run whatever it is, none with "Broken"."""
    seen = []

    def time_kernels(coretype):
        seen.append(coretype)
        return None if coretype == "Broken" else Timing(coretype, "Zen", "", 50.0)

    monkeypatch.setattr(verify_site, "time_kernels", time_kernels)
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    return seen


def test_the_setting_of_the_platform_is_used_and_the_kernels_that_run_are_told(asked):
    assert kernels_here(Blas(core="Zen", coretype_env="Zen")) == ("Zen", "Zen")
    assert kernels_here(Blas(core="SkylakeX")) == (None, "Zen")
    assert asked == ["Zen", None]


def test_a_setting_of_the_user_counts_where_the_platform_has_none(asked, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    kernels_here(Blas(core="Zen"))
    assert asked == ["Haswell"]


@pytest.mark.parametrize("sealed", [None, "SkylakeX"])
def test_a_resumed_campaign_keeps_its_kernels_where_the_platform_does_not_say_which(sealed, tmp_path, monkeypatch):
    """What was fastest before the interruption may not be so after it, where two sets are about equally fast."""
    monkeypatch.setattr(verify_site, "choose_kernel_set", lambda: KernelSet("Haswell", "Haswell", 50.0, ()))
    (tmp_path / "predictions.json").write_text(json.dumps({"program": {"coretype": sealed}}))
    silent = platform().model_copy(update={"blas": None})
    here = where_of(None, Request(), None, None, other_machine=True)
    program = HplProgram(Path("xhpl"), is_driver=True)
    for resumed, expected in ((None, "Haswell"), (tmp_path, sealed)):
        with opened_site(here, silent, program, 1, None, calibrated=False, resumed=resumed) as (_, used, _):
            assert used.coretype == expected


def platform(**nodes: object):
    dahu = load_platform("dahu")
    about = {"count": 2, "cores": 4, "cpus": 1, "cpu_model": "A 1", **nodes}
    two = {"nodes": dahu.nodes.model_copy(update=about), "blas": Blas(core="Zen"), "name": "two", "population": None}
    return dahu.model_copy(update=two)


def seen(count: int = 2, **of_last: object) -> list[SeenNode]:
    alike = {"cpu_model": "A 1", "cores": 4, "blas_core": "Zen"}
    return [SeenNode(f"n{i + 1}", **{**alike, **(of_last if i == count - 1 else {})}) for i in range(count)]


@pytest.mark.parametrize(
    ("nodes", "different"),
    [
        (seen(cpu_model="B 2"), "processor: A 1, on n2 B 2"),
        (seen(cores=8), "cores: 4, on n2 8"),
        (seen(blas_core="Haswell"), "BLAS kernels: Zen, on n2 Haswell"),
        (seen(3), "nodes: 2, here 3"),
    ],
)
def test_each_difference_is_refused_in_one_line_and_with_the_option_told(nodes, different):
    with pytest.raises(InputError) as refused:
        check_same_machine(platform(), nodes, other_machine=False)
    assert f"two is the platform of another machine ({different})" in str(refused.value)
    assert "--other-machine" in str(refused.value)
    assert check_same_machine(platform(), nodes, other_machine=True) == [
        f"the platform is of another machine: {different}"
    ]


def test_what_a_platform_does_not_say_is_told_and_the_rest_compared():
    silent = platform(cpu_model=None).model_copy(update={"blas": None})
    (line,) = check_same_machine(silent, seen(), other_machine=False)
    assert "does not say its processor and BLAS kernels" in line
    with pytest.raises(InputError, match="cores: 4, on n2 8"):
        check_same_machine(silent, seen(cores=8), other_machine=False)
