"""Which BLAS kernels a verification with a platform file runs."""

import pytest

from lepaute.cli.verify import remembered_coretype
from lepaute.errors import EnvironmentProblem
from lepaute.measure import kernel_set
from lepaute.measure.kernel_set import Timing
from lepaute.platform.schema import Blas


@pytest.fixture
def asked(monkeypatch):
    """What OPENBLAS_CORETYPE the kernels were asked for with; the Zen ones run whatever it is, none with "Broken"."""
    seen = []

    def time_kernels(coretype):
        seen.append(coretype)
        return None if coretype == "Broken" else Timing(coretype, "Zen", "", 50.0)

    monkeypatch.setattr(kernel_set, "time_kernels", time_kernels)
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    return seen


def test_the_setting_of_the_platform_is_used_without_a_word_where_its_kernels_run(asked, capsys):
    assert remembered_coretype(Blas(core="Zen", coretype_env="Zen")) == "Zen"
    assert remembered_coretype(Blas(core="Zen")) is None
    assert asked == ["Zen", None]
    assert capsys.readouterr().err == ""


def test_other_kernels_than_those_measured_give_one_warning_that_names_both(asked, capsys):
    assert remembered_coretype(Blas(core="SkylakeX", coretype_env="SkylakeX")) == "SkylakeX"
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: ")
    assert "SkylakeX" in warning
    assert "Zen" in warning


def test_a_setting_of_the_user_counts_where_the_platform_has_none(asked, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    remembered_coretype(Blas(core="Zen"))
    assert asked == ["Haswell"]


def test_a_setting_with_which_nothing_runs_is_refused(asked):
    with pytest.raises(EnvironmentProblem, match="OPENBLAS_CORETYPE=Broken"):
        remembered_coretype(Blas(core="Zen", coretype_env="Broken"))
