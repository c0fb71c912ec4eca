"""Every public name: its type hints, completion, help, types for checkers; and the extras of the package."""

import doctest
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
import typing
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from support_limits import ran

import lepaute as lp
from lepaute.cli import COMMANDS
from lepaute.kit.extras import EXTRAS, MissingExtra, missing_extra, need
from lepaute.simulate.application import Application
from lepaute.simulate.apps.hpl import parameters

PUBLIC = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in (lp, lp.compare, lp.design, lp.fit, lp.study, lp.watch)
    for name in package.__all__
    if not inspect.ismodule(getattr(package, name)) and not name.startswith("__")
}
EXAMPLES = [  # whose docstring is in sections, with an example that runs here
    *("Hpl", "difference", "load_platform", "override", "predict", "read_prediction", "simulate_one"),
    *("Prediction.plot", "Prediction.to_frame", "fit.SegmentedLine.plot", "fit.segment", "watch.open"),
]
SECTIONS = [
    *("predict", "difference", "emulate", "load_platform", "override", "read_prediction", "simulate_one", "read_trace"),
    *("Archive.open", "compare.archives", "fit.models", "fit.segment", "study.run", "watch.open"),
]


def named(name: str) -> typing.Any:
    """A public name, or a method of one, by its path below `lepaute`."""
    value: typing.Any = lp
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", PUBLIC)
def test_the_type_hints_of_a_public_name_and_of_what_it_shows_are_known(name: str) -> None:
    value = PUBLIC[name]
    typing.get_type_hints(value)
    if not inspect.isclass(value):
        return
    for member in dir(value):
        if member.startswith("_"):
            continue
        known = inspect.getattr_static(value, member, None)
        function = known.fget if isinstance(known, property) else getattr(known, "__func__", known)
        if inspect.isfunction(function):
            typing.get_type_hints(function)


def test_completion_of_an_application_shows_its_fields_and_nothing_of_the_engine() -> None:
    hpl = lp.Hpl(n=1000, p=1, q=2)
    options = {field.name for field in fields(hpl)}
    for shown in (dir(lp.Hpl), dir(hpl)):
        names = {name for name in shown if not name.startswith("_")}
        assert {"n", "nb", "bcast", "ranks", "memory_bytes", "rate_gflops", "parameters"} <= names
        assert options <= names
        assert len(names - options) < 20
        engine = {"core_parameters", "emulation", "estimated_run_s", "draws", "trace_rows", "kernels"}
        assert not names & engine
    protocol = {name for name in vars(Application) if not name.startswith("_")}
    assert {name for name in dir(lp.Program) if name in protocol} == protocol
    assert len(protocol) < 15


def test_completion_shows_fields_without_a_default_before_there_is_a_value() -> None:
    assert {"application", "warnings", "time_s", "to_frame"} <= set(dir(lp.Prediction))
    assert {"answer", "outcomes"} <= set(dir(lp.study.StudyRun))
    assert {"verdicts", "to_frame"} <= set(dir(lp.compare.Comparison))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_says_what_it_is(name: str) -> None:
    assert len((inspect.getdoc(PUBLIC[name]) or "").splitlines()[0]) > 10


@pytest.mark.parametrize("name", SECTIONS)
def test_every_argument_is_described(name: str) -> None:
    function = named(name)
    text = inspect.getdoc(function) or ""
    described = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    told = {word for line in described.splitlines() if " : " in line for word in line.split(" : ")[0].split(", ")}
    assert told >= set(inspect.signature(function).parameters)
    assert "Raises\n------\n" in text
    assert ">>> import lepaute as lp" in text


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value = named(name)
    test = doctest.DocTestParser().get_doctest(str(value.__doc__), {}, name, None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (parameters.Broadcast, parameters.BROADCASTS),
        (parameters.Swap, parameters.SWAPS),
        (parameters.Factorisation, parameters.FACTORISATIONS),
        (parameters.Form, parameters.FORMS),
        (parameters.Order, parameters.ORDERS),
    ],
)
def test_the_choices_that_type_checkers_know_are_those_of_hpl(kind, words) -> None:
    assert typing.get_args(kind)[: len(words)] == tuple(words), "HPL's words come first, by their codes"


@pytest.mark.slow
@pytest.mark.long
def test_the_example_that_help_opens_with_passes_strict_type_checks(tmp_path: Path) -> None:
    program = "".join(example.source for example in doctest.DocTestParser().get_examples(str(lp.__doc__)))
    (tmp_path / "example.py").write_text(f"{program}reveal_type(prediction.time_s.low)\nlp.Hpl(n=8, bcast='3ring')\n")
    checked = ran(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "example.py"], cwd=tmp_path
    )
    lines = checked.stdout.splitlines()
    assert 'Revealed type is "float"' in lines[0] or 'Revealed type is "builtins.float"' in lines[0], checked.stdout
    assert [line for line in lines if ": error:" in line] == [line for line in lines if "bcast" in line]
    assert len([line for line in lines if ": error:" in line]) == 1


def test_what_python_and_the_command_line_leave_out_has_the_same_value() -> None:
    from lepaute.kit.options import options_of
    from lepaute.simulate.apps import APPLICATIONS, application_class

    assert lp.Stencil(cells=(8, 8, 8), cell_time_s=1e-9).iterations == 100
    for name in APPLICATIONS:
        for field, option in options_of(application_class(name)).items():
            if option.default is None:
                continue
            signature = inspect.signature(application_class(name))
            given = option.parse(option.default) if option.parse else option.default
            assert signature.parameters[field].default == given


def test_no_name_of_before_is_gone() -> None:
    before = json.loads((Path(__file__).parents[1] / "data" / "public_names.json").read_text())
    for package, names in before.items():
        module: typing.Any = lp if package == "lepaute" else getattr(lp, package)
        assert not set(names) - set(dir(module)) - {"__version__"}


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
