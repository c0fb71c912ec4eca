"""Which BLAS kernels a verification with a platform file runs, and whether the machine is the platform's."""

import json
from pathlib import Path

import pytest

from lepaute.cli import verify_site
from lepaute.cli.verify_site import kernels_here, opened_site, where_of
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure.kernel_set import KernelSet, Timing
from lepaute.measure.schedulers import Request
from lepaute.measure.verify.machine import SeenNode, check_same_machine
from lepaute.measure.verify.real_run import HplProgram
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.schema import Blas


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


def test_a_setting_with_which_nothing_runs_is_refused(asked):
    with pytest.raises(EnvironmentProblem, match="OPENBLAS_CORETYPE=Broken"):
        kernels_here(Blas(core="Zen", coretype_env="Broken"))


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


def test_nodes_like_those_of_the_platform_pass_without_a_word():
    for count in (1, 2):  # a part of the machine is the machine
        assert check_same_machine(platform(), seen(count), other_machine=False) == []


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
