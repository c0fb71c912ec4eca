"""The choice of the BLAS kernels: slow ones are seen, fast ones taken, and never on one unlucky timing."""

import pytest

from lepaute.errors import EnvironmentProblem
from lepaute.measure.kernel_set import Timing, candidates, choose_kernel_set, decide

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
    assert chosen.coretype_env == "SkylakeX"


def test_good_default_kernels_are_kept_without_a_word() -> None:
    timer = timer_of({None: [90.0], "SkylakeX": [93.0], "Zen": [60.0]}, {None: "Cooperlake"})
    chosen = choose_kernel_set(environment={}, flags=AVX512, timer=timer)
    assert (chosen.core_name, chosen.coretype_env, chosen.warnings) == ("Cooperlake", None, ())
    assert chosen.coretype_env is None


def test_a_default_disturbed_at_its_first_timing_is_timed_again_and_kept() -> None:
    timer = timer_of({None: [40.0, 92.0], "SkylakeX": [93.0]}, {None: "Cooperlake"})
    chosen = choose_kernel_set(environment={}, flags=AVX512, timer=timer)
    assert (chosen.coretype_env, chosen.gflops) == (None, 92.0)


def test_kernels_that_crash_or_that_a_fixed_library_ignores_are_not_taken() -> None:
    # Zen crashes (absent); SkylakeX is ignored by a library built for one set: it reports the default's name.
    timer = timer_of({None: [20.0], "SkylakeX": [99.0]}, {None: "Prescott", "SkylakeX": "Prescott"})
    assert choose_kernel_set(environment={}, flags=AVX512, timer=timer).coretype_env is None


def test_the_users_own_choice_is_kept_and_called_slow_where_it_is() -> None:
    timer = timer_of({"Prescott": [20.0], "SkylakeX": [93.0]})
    chosen = choose_kernel_set(environment={"OPENBLAS_CORETYPE": "Prescott"}, flags=AVX512, timer=timer)
    assert (chosen.coretype_env, chosen.gflops) == ("Prescott", 20.0)
    assert "kept, because OPENBLAS_CORETYPE=Prescott is set" in chosen.warnings[0]


def test_without_openblas_the_error_names_the_package() -> None:
    with pytest.raises(EnvironmentProblem, match="apt-get install libopenblas-dev"):
        choose_kernel_set(environment={}, flags=AVX512, timer=timer_of({}))
    with pytest.raises(EnvironmentProblem, match="unset OPENBLAS_CORETYPE"):
        choose_kernel_set(environment={"OPENBLAS_CORETYPE": "No"}, flags=AVX512, timer=timer_of({}))
