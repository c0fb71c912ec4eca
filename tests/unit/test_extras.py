"""The extras of the package: what is declared is what the code looks for, and what is missing is told in one line."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from support_limits import ran

from lepaute.cli import COMMANDS
from lepaute.kit.extras import EXTRAS, MissingExtra, missing_extra, need

ROOT = Path(__file__).parents[2]
#: Distributions whose name is not that of their module.
MODULE_OF = {
    "vl-convert-python": "vl_convert",
    "prometheus-client": "prometheus_client",
    "dask-jobqueue": "dask_jobqueue",
}
#: Of a process: no module of any extra can be imported, as where only the core is installed.
ONLY_THE_CORE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def declared(extra: str) -> set[str]:
    """Modules that an extra of pyproject.toml brings, with those of the extras that it names."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    modules = set()
    for requirement in table[extra]:
        if others := re.fullmatch(r"lepaute\[(.*)\]", requirement):
            modules |= {module for other in others[1].split(",") for module in declared(other)}
        else:
            name = re.match(r"[\w-]+", requirement)
            modules.add(MODULE_OF.get(name[0], name[0]))
    return modules


def lowest(*extras: str) -> dict[str, str]:
    """By distribution, the least version that pyproject.toml allows to the core and `extras`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    found = (re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", each) for each in listed)
    return {each[1].lower(): each[2] for each in found if each} | {
        "python": project["requires-python"].removeprefix(">=")
    }


def core_only(tmp_path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    modules = {module for extra in EXTRAS.values() for module in extra}
    (tmp_path / "sitecustomize.py").write_text(ONLY_THE_CORE.format(modules=modules))
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    return ran([sys.executable, "-m", "lepaute.cli.main", *words], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})


def test_the_modules_of_each_extra_are_those_that_pyproject_installs() -> None:
    missing_jax = {"mcmc": {"jax"}}  # of NumPyro, which brings it
    for extra, modules in EXTRAS.items():
        known = set(modules) - missing_jax.get(extra, set())
        # What an extra takes along for others (otf2 the traces) is told by those.
        assert known <= declared(extra), extra
    assert {module for extra in EXTRAS.values() for module in extra} - {"jax", "numpyro", "otf2"} == declared("all")


def test_a_command_names_its_own_extra_and_others_the_first_that_has_the_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    error = ImportError(name="pyarrow.parquet")
    assert str(missing_extra(error, "trace", "trace")).endswith(
        "trace needs pyarrow, which is not installed: pip install 'lepaute[trace]'"
    )
    assert str(missing_extra(error)).endswith("pip install 'lepaute[fit]'")
    with pytest.raises(MissingExtra, match=r"^--trace needs pyarrow"):
        need("trace", "--trace")


def test_the_recipes_of_conda_and_spack_ask_for_the_versions_of_pyproject() -> None:
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    assert dict(each.split(" >=") for each in recipe["requirements"]["run"]) == lowest("fit")
    spack = (ROOT / "packaging/spack/package.py").read_text()
    asked = re.findall(r'"(?:py-)?([\w-]+)@([\d.]+):[^"]*", type=(?!"build")', spack) + re.findall(
        r'\("([\w-]+)", "([\d.]+)"\)', spack
    )
    assert dict(asked) == lowest("fit", "report")


@pytest.mark.slow
def test_the_core_alone_predicts_segments_and_shows_platforms(tmp_path: Path) -> None:
    tables = ROOT / "tests" / "data" / "duration_tables"
    for line in (
        "predict hpl -p dahu --n 5k --nb 128 --grid 4x4 --runs 3",
        "predict stencil -p dahu --grid 2x2x1 --cells 256x256x16 --cell-time 2e-9 --runs 2",
        "platform new --nodes 4 --cores 2x8 --dgemm 45G --link 100Gb --memory 64G -o new.yaml",
        "platform show dahu",
        "platform check new.yaml",
        f"segment {tables / 'osu_latency.txt'}",
        "archive --help",
    ):
        ran = core_only(tmp_path, *line.split())
        assert (ran.returncode, "lepaute[" in ran.stderr) == (0, False), f"{line}: {ran.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("words", [[command.name] for command in COMMANDS if command.extra], ids=lambda words: words[0])
def test_a_command_without_its_extra_ends_with_2_and_the_line_that_installs_it(tmp_path, words):
    extra = next(command.extra for command in COMMANDS if command.name == words[0])
    ran = core_only(tmp_path, *words, "anything")
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert re.fullmatch(
        rf"lepaute: {words[0]} needs \w+, which is not installed: pip install 'lepaute\[{extra}\]'", line
    )
    assert core_only(tmp_path, *words, "--help").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(("option", "extra"), [("--plot=x.png", "report"), ("--trace=x.parquet", "trace")])
def test_an_option_without_its_extra_is_refused_before_the_work(tmp_path: Path, option: str, extra: str) -> None:
    ran = core_only(tmp_path, *"predict hpl -p dahu --n 5k --nb 128 --grid 4x4".split(), option)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.endswith(f"pip install 'lepaute[{extra}]'\n")
