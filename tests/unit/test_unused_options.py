"""Options that a mode of their command makes nothing of: refused by name, before anything is opened or measured."""

from pathlib import Path

import pytest

from lepaute.cli.commands import built
from lepaute.cli.main import main

ANSWER = (
    "margin correction fail-if-slower strict report plot csv latex junit markdown annotations guidelines details json "
    "force"
)
CLOCKS_ANSWER = "margin enough report plot details json force"
MEASURED = (
    "ops sizes np ranks-per-node hostfile factor datatype op root compute precision budget calls mpiruns "
    "synchronisation clock clock-method cold warm-up limit seed sessions every resume nodes count walltime queue "
    "account image constraint job ssh-config output scheduler python force"
)
#: Command line, and which other options it uses; all the rest is refused.
USED = {
    "compare c.zip": f"{ANSWER} primary left right scaling baseline",
    "compare a.txt b.txt": f"{ANSWER}",
    "compare openmpi": f"{MEASURED} for primary measure-only guidelines baseline",
    "compare openmpi mpich --measure-only": f"{MEASURED} for primary measure-only guidelines",
    "clocks c.zip": CLOCKS_ANSWER,
    "clocks --simulate=4,1": f"{CLOCKS_ANSWER} simulate platform methods after mpiruns seed output",
}
#: Values of options that take neither their default nor a number.
VALUES = {
    "--report": "x.html",
    "--plot": "x.png",
    "--scaling": "y.png",
    "--csv": "x.csv",
    "--latex": "x.tex",
    "--factor": "cache=warm,cold",
    "--compute": "1s",
    "--limit": "1s",
    "--simulate": "4,1",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        Path(name).touch()
    Path("x.py").write_text("import lepaute\n\n\nclass Nothing(lepaute.Job):\n    pass\n")


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command line is to be without."""
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.partition("leave out ")[2] or line


@pytest.mark.parametrize("words", USED)
def test_what_a_mode_does_not_use_is_refused_by_name(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = {
        next(name for name in param.opts if name.startswith("--")): param
        for param in built(words.split(maxsplit=1)[0])[0].params
        if param.param_type_name == "option"
    }
    unused = [name for name in options if name[2:] not in USED[words].split()]
    assert len(unused) > len(options) / 5
    defaults = {name: param.default for name, param in options.items()} | VALUES
    values = {name: value if isinstance(value, str) else str(value or 6) for name, value in defaults.items()}
    given = [name if options[name].is_flag else f"{name}={values[name]}" for name in unused]
    assert refused([*words.split(), *given], capsys).split(", ") == unused


def test_hpl_without_a_grid_says_first_that_it_has_one_rank_and_which_grid_fills_the_nodes(capsys) -> None:
    assert main(["predict", "hpl", "-p", "dahu", "--n", "1k", "--runs", "1"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("lepaute: 1 rank, as there is no --grid; --grid 32x32 fills all nodes")
    assert "1 simulated run; --runs 10 gives an interval" in said.out
    assert main(["predict", "hpl", "-p", "dahu", "--n", "1k", "--grid", "1x1", "--runs", "1"]) == 0
    assert "--grid" not in capsys.readouterr().err
