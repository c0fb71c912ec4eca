"""Factors of one's own: a function that is registered, and one that an installed distribution declares."""

import os
import re
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest
from support_factors import calibration, dgemm_rows, experiment
from support_limits import ran

from lepaute.errors import InputError
from lepaute.measure.archive import Archive
from lepaute.watch.factors import FactorValue, factors_of, kinds, register, strata_of, unregister

STREAM = pandas.DataFrame({"node": ["n1", "n1"], "function": ["triad", "triad"], "bytes": [4e9, 6e9], "s": [0.4, 0.6]})
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "howto" / "add_format.md"
#: The example of the documentation, as it stands there.
MODULE = next(
    block for block in re.findall(r"```python\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL) if "def stream" in block
)
_INFO = "stream_factors-1.0.dist-info"
_WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
#: What a build makes of a project with this entry point: a wheel (PEP 427) of one module.
FILES = {
    "stream_factors.py": MODULE,
    f"{_INFO}/METADATA": "Metadata-Version: 2.1\nName: stream-factors\nVersion: 1.0\n",
    f"{_INFO}/WHEEL": _WHEEL,
    f"{_INFO}/entry_points.txt": "[lepaute.watch.factors]\nstream = stream_factors:stream_factors\n",
}


def wheel(folder: Path) -> Path:
    """The distribution as a file that pip installs."""
    path = folder / "stream_factors-1.0-py3-none-any.whl"
    listed = "".join(f"{name},,\n" for name in (*FILES, f"{_INFO}/RECORD"))
    with zipfile.ZipFile(path, "w") as file:
        for name, text in {**FILES, f"{_INFO}/RECORD": listed}.items():
            file.writestr(name, text)
    return path


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive.open(experiment(tmp_path / "a.zip", {"stream": STREAM}))


@pytest.fixture(autouse=True)
def _none_left() -> Iterator[None]:
    yield
    unregister("mine")


def rows_of(archive: Archive, **kwargs: Any) -> list[tuple[str, int, str, float]]:
    table = factors_of(archive, **kwargs)
    return list(table[["node", "cpu", "factor", "value"]].itertuples(index=False, name=None))


def test_a_registered_function_gives_factors_with_their_own_conditions(archive: Archive) -> None:
    names: dict[str, Any] = {}
    exec(MODULE, names)  # noqa: S102  what a reader would type
    register("mine", names["stream_factors"])
    assert rows_of(archive) == [("n1", -1, "stream_triad_B_per_s", 1e10)]
    ((_, conditions),) = strata_of(archive).items()
    assert conditions["array"] == "2 calls"
    assert conditions["experiment"] == "Daily"  # of the run's protocol
    unregister("mine")
    assert rows_of(archive) == []


def test_a_node_that_failed_has_a_row_of_a_factor_of_ones_own_where_another_node_has_it(tmp_path: Path) -> None:
    register("mine", lambda _archive: [FactorValue("n1", "answer_s", 42.0)])
    lost = [{"node": "n2", "when": "", "why": "the connection ended", "phase": "run"}]
    path = calibration(tmp_path / "a.zip", dgemm_rows(["n1"]), status="partial", lost_nodes=lost)
    table = factors_of(Archive.open(path))
    mine = table[table["factor"] == "answer_s"].set_index("node")["state"]
    assert mine.to_dict() == {"n1": "done", "n2": "missing"}


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda _archive: 1 / 0, r"a\.zip: the factors 'mine' \(registered\) failed: ZeroDivisionError: division by"),
        (lambda _archive: [("n1", 3.0)], r"the factors 'mine' \(registered\) gave a tuple; they give FactorValues"),
        (lambda _archive: 3, r"failed: TypeError"),
        (lambda _archive: [FactorValue("n1", "my factor", 3.0)], "'my factor' is not a name of a factor"),
        (lambda _archive: [FactorValue("n1", "x_s", float("inf"))], "x_s of node n1 is infinite"),
        (lambda _archive: [FactorValue("n1", "x_s", "fast")], "x_s of node n1: 'fast' is not a number"),
        (lambda _archive: [FactorValue("n1", "x_s", 1.0, cpu=-2)], "the cpu is -2"),
        (lambda _archive: [FactorValue(1, "x_s", 1.0)], "x_s: the node is 1; give its name"),
        (lambda _archive: [FactorValue("n9", "x_s", 1.0)], "name the node 'n9', which the archive does not describe"),
        (lambda _archive: [FactorValue("n1", "x_s", 1.0)] * 2, "x_s of node n1, cpu -1 is given twice, .* 'mine'"),
    ],
)
def test_what_a_function_does_wrong_is_one_line_that_names_it(archive: Archive, function: Any, said: str) -> None:
    register("mine", function)
    with pytest.raises(InputError, match=said) as problem:
        factors_of(archive)
    assert "\n" not in str(problem.value)


def test_a_name_is_given_once(archive: Archive) -> None:
    register("mine", lambda _archive: [])
    with pytest.raises(InputError, match="there is a kind of factors 'mine' already"):
        register("mine", lambda _archive: [])
    with pytest.raises(InputError, match="there is a kind of factors 'memory' already"):
        register("memory", lambda _archive: [])
    assert [kind.name for kind in kinds()][-1] == "mine"


@pytest.mark.slow
def test_factors_of_an_installed_distribution_are_found(archive: Archive, tmp_path: Path) -> None:
    """Installed by pip into an environment of its own, which sees the packages of this one."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    site = next((environment / "lib").glob("python*/site-packages"))
    here = [path for path in sys.path if path and Path(path).is_dir()]
    (site / "of_the_tests.pth").write_text("".join(f"{path}\n" for path in here))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", "--quiet"]
    ran([*pip, str(wheel(tmp_path))], check=True)
    shown = (
        "import sys; from lepaute.measure.archive import Archive; from lepaute.watch.factors import factors_of\n"
        "print(*factors_of(Archive.open(sys.argv[1]))[['factor', 'value']].iloc[0])"
    )
    found = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), "-c", shown, str(archive.path)]
    assert ran(command, check=True, env=found).stdout.split() == ["stream_triad_B_per_s", "10000000000.0"]
    (site / "stream_factors.py").write_text("stream_factors = 3\n")
    broken = ran(command, env=found)
    assert "InputError: the factors 'stream' of stream-factors are no function" in broken.stderr
