"""What a command writes replaces nothing that is there, unless --force is given; two commands share no default.

Options are found by themselves: one that takes a path is an output, unless it is named here.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from effects.lines import ANSWERS
from hostile.cases import BASES, Base, commands, write_inputs

from lepaute.cli.main import main
from lepaute.simulate.apps import APPLICATIONS

pytestmark = pytest.mark.slow

READ = {
    "--between", "--binary", "--dat", "--hostfile", "--install", "--inventory", "--mapping", "--mpicc", "--python",
    "--rankfile", "--results", "--source", "--ssh-config", "--transfer", "--usual", "--within", "--xhpl",
    "compare --for", "learn --check",
    "watch events import --events", "watch events import --outliers", "compare --markdown",  # appended to
}  # fmt: skip
#: They are made, or hold what they know as theirs: results that --resume continues, an older site.
FOLDERS = {
    "--archives", "archive extract --output", "examples --output", "trace otf2 --output", "verify hpl --output",
    "watch site --output", *(f"verify command {name} --output" for name in APPLICATIONS),
} | {f"study {question} --output" for question in ("whatif", "tune", "sensitivity", "capacity", "ready")}  # fmt: skip
#: They end before they write anything where there are neither compilers nor measurements.
WITHOUT_RESULT = {
    "calibrate", "clocks", "compare", "emulate hpl", "emulate program", "fit", "learn", "record", "run",
    "trace convert", "verify hpl", *(f"verify command {name}" for name in APPLICATIONS),
}  # fmt: skip
#: What an option needs beside it.
BESIDE = {
    "segment --plot": {"--table": ""},
    "segment --report": {"--table": ""},
    "emulate program --plot": {"--np": "1,2"},
    **{f"predict {name} --plot": {"--runs": "2"} for name in APPLICATIONS},
}


def outputs() -> Iterator[tuple[str, Any]]:
    """All options of all commands that name what is written: the command and the option."""
    for command, built in commands().items():
        for option in built.params:
            name = name_of(option)
            is_path = "Path" in str(option.type_descriptor.annotation)
            if is_path and name.startswith("--") and not {name, f"{command} {name}"} & READ:
                yield command, option


def name_of(option: Any) -> str:
    return next((name for name in option.opts if name.startswith("--")), option.opts[0])


def is_folder(command: str, name: str) -> bool:
    return bool({name, f"{command} {name}"} & FOLDERS)


FILES = [(command, name_of(each)) for command, each in outputs() if not is_folder(command, name_of(each))]
MADE = [(command, name_of(each)) for command, each in outputs() if is_folder(command, name_of(each))]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("in")
    write_inputs(folder)
    return folder


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # nothing is measured
    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / "home"))


def words_of(command: str, name: str, path: Path, inputs: Path) -> list[str]:
    """The cheap command line of the hostile tests, with the output in that place, and no other."""
    base: Base = BASES[command]
    flags = {name_of(param) for param in commands()[command].params if getattr(param, "is_flag", False)}
    others = {option for other, option in FILES if other == command}
    options: dict[str, Any] = {option: text for option, text in base.options.items() if option not in others}
    if name == "--archive":
        options["--output"] = "out.yaml"
    beside = {**BESIDE.get(command, {}), **BESIDE.get(f"{command} {name}", {})}
    words: list[str] = []
    for option, texts in {**options, **beside, name: str(path)}.items():
        each = (texts,) if isinstance(texts, str) else texts
        words += [option if option in flags else f"{option}={text}" for text in each]
    rest = [word for texts in base.arguments.values() for word in ((texts,) if isinstance(texts, str) else texts)]
    return [word.replace("{in}", str(inputs)) for word in (*command.split(), *words, *(["--", *rest] if rest else []))]


def suffix_of(command: str, name: str) -> str:
    if command == "run" or name == "--archive":
        return ".zip"
    if command in ("trace gantt", "design picture"):
        return ".png"
    return {
        "--report": ".html", "--plot": ".png", "--scaling": ".png", "--csv": ".csv", "--latex": ".tex",
        "--gantt": ".png", "--perfetto": ".json",
    }.get(name, ".out")  # fmt: skip


@pytest.mark.parametrize(("command", "name"), FILES, ids=[" ".join(file) for file in FILES])
def test_a_file_that_is_there_is_replaced_only_with_force(command, name, inputs, tmp_path, capsys):
    path = tmp_path / f"precious{suffix_of(command, name)}"
    path.write_bytes(b"precious")
    words = words_of(command, name, path, inputs)
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert f"{path}: already exists; choose another name, or replace it with --force" in told.err
    assert path.read_bytes() == b"precious"
    at = words.index("--") if "--" in words else len(words)
    status = main([*words[:at], "--force", *words[at:]])
    told_then = capsys.readouterr().err
    assert "already exists" not in told_then
    if command in WITHOUT_RESULT:
        assert path.read_bytes() == b"precious"
    else:
        assert status in ANSWERS, told_then
        assert path.read_bytes() != b"precious"


@pytest.mark.parametrize(("command", "name"), MADE, ids=[" ".join(each) for each in MADE])
def test_a_file_where_a_folder_is_due_stays(command, name, inputs, tmp_path, refusal_of):
    path = tmp_path / "precious"
    path.write_bytes(b"precious")
    refusal_of(*words_of(command, name, path, inputs))
    assert path.read_bytes() == b"precious"


def test_two_commands_share_no_default_output() -> None:
    users = defaultdict(set)
    for command, option in outputs():
        if isinstance(option.default, Path | str):  # verify command stencil is verify command
            users[str(option.default)].add(" ".join(command.split()[:2]))
    assert {"platform.yaml", "comparison.zip", "trace.parquet"} <= users.keys()
    assert {name: each for name, each in users.items() if len(each) > 1} == {}
