"""Every option and argument of every command, with each hostile value of its type, on a command line that is cheap."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_args
from zlib import crc32

from lepaute.cli import COMMANDS
from lepaute.cli.commands import built
from lepaute.simulate.apps import APPLICATIONS

LONG_DIGITS = "9" * 5000  # int() refuses more than 4300
WHOLE = ("", "-1", "0", "2147483648", LONG_DIGITS, "1e308", "nan", "²")
REAL = ("", "-1", "0", LONG_DIGITS, "1e308", "1e-308", "inf", "nan", "²")
TEXT = (
    "", "\x1b]0;title\x07\x1b[2J\udcff\n", "x" * 100_000, "-1", LONG_DIGITS, "nan", "²", "0-9999999999", "2147483648",
    "1,2,,3", "[" * 3000,
)  # fmt: skip
#: In the folder of inputs, which cannot be written; the last two could be, in the working folder.
PATHS = ("missing/x", ".", "/dev/null", "fifo", "loop", "locked", "junk", "", "n" * 300, "a\x1b[2J\udcff")


@dataclass(frozen=True)
class Base:
    """A command line that ends soon, to which one hostile value is added.

    options, arguments: texts by name, in which {in} is the folder of inputs; a tuple for what is given several times
    leave_out: parameters that are not tried, each with the reason
    """

    options: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    arguments: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    leave_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A command line, and what it is for a reader."""

    command: str
    parameter: str
    value: str
    words: tuple[str, ...]

    @property
    def label(self) -> str:
        value = self.value if len(self.value) < 40 else f"{self.value[:10]}...({len(self.value)})"
        return f"{self.command} {self.parameter} {value!r}"


_PLATFORM = {"--platform": "{in}/platform.yaml"}
_DESIGN = {"file": "{in}/design.csv"}
_TRACE = {"file": "{in}/trace.parquet"}
_OUTPUT = {"--output": "out"}
_COMMAND = {"--time-pattern": "time: (.*)", "--runs": "1", "--output": "out"}
#: Not in the folder itself, whose files have to stay as they are: what is tested is recorded.
_STORE = {"--store": "{in}/written/store"}
#: Without compilers, launchers and schedulers on PATH these end before they measure anything.
BASES = {
    "doctor": Base(),
    "examples": Base({"--output": "out"}, {"topics": ("watch",)}),
    "calibrate": Base({"--archive": "out.zip"}),
    "platform list": Base(),
    "platform show": Base(arguments={"name": "{in}/platform.yaml"}),
    "platform check": Base(arguments={"file": "{in}/platform.yaml"}),
    "platform export": Base({"--output": "out.xml"}, {"name": "{in}/platform.yaml"}),
    "platform new": Base(
        {"--nodes": "2", "--cores": "2x2", "--dgemm": "45G", "--link": "100Gb", "--output": "out.yaml"}
    ),
    "platform messages": Base(
        {"--between": "{in}/durations.txt", "--unit": "us", "--output": "out.yaml"}, {"name": "{in}/platform.yaml"}
    ),
    "platform import": Base({"--output": "out.yaml"}, {"file": "{in}/platform.xml"}),
    "platform synthesize": Base({"--nodes": "2", "--output": "out.yaml"}),
    "platform combine": Base({"--output": "out.yaml"}, {"platforms": ("dahu", "{in}/platform.yaml")}),
    "platform population": Base(
        {"--of": "{in}/platform.yaml", "--output": "out.yaml"}, {"sources": ("{in}/table.csv",)}
    ),
    "predict hpl": Base({**_PLATFORM, "--n": "64", "--nb": "32", "--grid": "1x1", "--runs": "1"}),
    "predict trace": Base({**_PLATFORM, "--runs": "1"}, {"recording": "{in}/trace.parquet"}),
    "emulate program": Base({**_PLATFORM, "--np": "2"}, {"words": ("{in}/junk",)}),
    "emulate hpl": Base({**_PLATFORM, "--n": "64", "--nb": "32", "--grid": "1x1", "--runs": "1"}),
    "emulate compilers": Base(),
    "completion": Base(arguments={"shell": "bash"}),
    "verify hpl": Base({**_PLATFORM, "--n": "64", "--nb": "32", "--grid": "1x1", "--output": "out"}),
    "verify command trace": Base(
        {**_PLATFORM, **_COMMAND}, {"recording": "{in}/trace.parquet", "words": ("mpirun", "{in}/junk")}
    ),
    "design dgemm": Base({"--output": "out.csv"}),
    "design factorial": Base({"--factor": ("a=1,2", "b=3,4"), "--output": "out.csv"}),
    "design fractional": Base({"--factor": ("a=1,2", "b=1,2", "c=1,2"), "--count": "4", "--output": "out.csv"}),
    "design latin": Base({"--factor": ("a=uniform:1:9", "b=uniform:1:9"), "--count": "4", "--output": "out.csv"}),
    "design sample": Base({"--factor": ("a=uniform:1:9", "b=uniform:1:9"), "--count": "4", "--output": "out.csv"}),
    "design mix": Base({"--output": "out.csv"}, {"files": ("{in}/design.csv",)}),
    "design show": Base(arguments=_DESIGN),  # type: ignore[arg-type]
    "design picture": Base(_OUTPUT, _DESIGN),  # type: ignore[arg-type]
    "design p2p": Base({"--output": "out.csv"}),
    "design ring": Base({"--output": "out.csv"}),
    "design hpl-step": Base({"--output": "out.csv"}),
    "design memory": Base({"--output": "out.csv"}),
    "design collective": Base({"--output": "out.csv"}),
    "run": Base({"--dry-run": "", "--output": "out.zip"}, {"script": "{in}/experiment.py"}),
    "archive show": Base(arguments={"file": "{in}/archive.zip"}),
    "archive verify": Base(arguments={"files": ("{in}/archive.zip",)}),
    "archive extract": Base(_OUTPUT, {"file": "{in}/archive.zip"}),
    "archive close": Base(arguments={"folder": "{in}/none.work"}),
    "archive diff": Base({}, {"first": "{in}/archive.zip", "second": "{in}/archive.zip"}),
    "compare": Base({"--output": "out.zip"}, {"libraries": ("openmpi",)}),
    "clocks": Base({"--output": "out.zip"}, {"what": "openmpi"}),
    "fit": Base({"--output": "out.yaml"}, {"archives": ("{in}/archive.zip",)}),
    "segment": Base({"--unit": "us"}, {"file": "{in}/durations.txt"}),
    "why": Base({"--usual": "{in}/usual.parquet"}, {"run": "{in}/trace.parquet"}),
    "record": Base({"--output": "out.parquet"}, {"words": ("mpirun", "{in}/junk")}),
    "learn": Base({"--output": "out.py"}, {"recordings": ("{in}/trace.parquet", "{in}/trace.parquet")}),
    "trace show": Base(arguments=_TRACE),  # type: ignore[arg-type]
    "trace gantt": Base(_OUTPUT, _TRACE),  # type: ignore[arg-type]
    "trace convert": Base(_OUTPUT, {"file": "{in}/smpi.trace"}),
    "trace perfetto": Base(_OUTPUT, _TRACE),  # type: ignore[arg-type]
    "trace otf2": Base(_OUTPUT, _TRACE),  # type: ignore[arg-type]
    "trace breakdown": Base(arguments=_TRACE),  # type: ignore[arg-type]
    "trace analyze": Base(arguments=_TRACE),  # type: ignore[arg-type]
    "study whatif": Base({**_OUTPUT, "--scheduler": "threads"}, {"file": "{in}/whatif.yaml"}),
    "study tune": Base({**_OUTPUT, "--scheduler": "threads"}, {"file": "{in}/tune.yaml"}),
    "study sensitivity": Base({**_OUTPUT, "--scheduler": "threads"}, {"file": "{in}/sensitivity.yaml"}),
    "study capacity": Base({**_OUTPUT, "--scheduler": "threads"}, {"file": "{in}/capacity.yaml"}),
    "study ready": Base(
        {**_OUTPUT, **_PLATFORM, "--scheduler": "threads", "--n": "64", "--grid": "1x2", "--runs": "1"},
        {"name": "temporal-variability"},
    ),
    "study check": Base({}, {"file": "{in}/whatif.yaml"}),
    "study schema": Base(),
    "watch ingest": Base(
        {"--store": "out", "--mapping": "{in}/mapping.yaml", "--format": "csv"}, {"files": ("{in}/values.csv",)}
    ),
    **dict.fromkeys(("watch test", "watch events list", "watch events propose", "watch replay"), Base(_STORE)),
    "watch events add": Base({"--store": "out", "--node": "1", "--reason": "why", "--date": "2026-11-23"}),
    "watch events withdraw": Base({**_STORE, "--reason": "why"}, {"ids": ("0123",)}),
    "watch events import": Base({"--store": "out", "--events": "{in}/events.csv"}),
    "watch events export": Base({**_STORE, "--events": "out.csv"}),
    "watch events accept": Base(_STORE, {"proposal": "0123"}),
    "watch events effect": Base(_STORE, {"date": "2023-11-21"}),
    # A name that no scheduler has: nothing is submitted where a Slurm is installed.
    "watch run": Base(
        {**_STORE, "--archives": "tests", "--scheduler": "none", "--for": "1s"}, {"experiment": "memory"}
    ),
    "watch site": Base({**_STORE, "--output": "site"}),
    "watch alert": Base({**_STORE, "--prometheus": "out.prom"}),
    "watch health": Base(_STORE, {"nodes": ("1",)}),
    "watch cost": Base({**_STORE, **_PLATFORM, "--n": "64", "--grid": "1x2", "--runs": "2"}, {"node": "1"}),
    "trace compare": Base({}, {"left": "{in}/trace.parquet", "right": "{in}/trace.parquet"}),
}


for _name_of, _entry in APPLICATIONS.items():
    if _entry.example.startswith("--"):  # else its input is a file of {in}
        _example = dict(zip(*[iter(_entry.example.split())] * 2, strict=True))
        BASES.setdefault(f"predict {_name_of}", Base({**_PLATFORM, "--runs": "1", **_example}))
        if _name_of != "hpl":
            BASES[f"verify command {_name_of}"] = Base(
                {**_PLATFORM, **_COMMAND, **_example}, {"words": ("mpirun", "{in}/junk")}
            )


@cache
def commands() -> dict[str, Any]:
    """All commands that can be run, by their words."""
    found: dict[str, Any] = {}
    for command in COMMANDS:
        found |= _below(command.name, built(command.name)[0])
    return found


def _below(words: str, command: Any) -> dict[str, Any]:
    """The command, or all those of a group and of its groups."""
    commands = getattr(command, "commands", None)
    if not commands:
        return {words: command}
    return {name: each for word, below in commands.items() for name, each in _below(f"{words} {word}", below).items()}


def cases_of(command: str, inputs: Path) -> Iterator[Case]:
    """The base alone, then each parameter with the values that are tried with this command."""
    base = BASES[command]
    yield Case(command, "", "", _words(command, base, inputs))
    for parameter in _tried(command):
        if _is_flag(parameter):
            name = _name(parameter)
            yield Case(command, name, "", _words(command, base, inputs, {name: ""}))
        else:
            yield from _cases_with(command, parameter, values_with(command, parameter), inputs)


def further_cases_of(command: str, inputs: Path) -> Iterator[Case]:
    """The base alone, then each parameter with the values of its type that are left to other commands.

    An option that several commands have, described in the same words, is one piece of code: the first of them tries all
    values. Files are opened by each command in its own way: all of them try all.
    """
    yield Case(command, "", "", _words(command, BASES[command], inputs))
    for parameter in _tried(command):
        if not _is_flag(parameter) and (_is_path(parameter) or _first_with()[_described(parameter)] == command):
            here = values_with(command, parameter)
            others = [value for value in values_of(parameter) if value not in here]
            yield from _cases_with(command, parameter, others, inputs)


@cache
def _first_with() -> dict[tuple[object, ...], str]:
    """The first command that has a parameter of these words."""
    return {_described(parameter): command for command in sorted(BASES, reverse=True) for parameter in _tried(command)}


def _described(parameter: Any) -> tuple[object, ...]:
    return _name(parameter), _type_of(parameter), getattr(parameter, "help", None) or id(parameter)


def _tried(command: str) -> list[Any]:
    left_out = {*BASES[command].leave_out, "--help"}
    return [parameter for parameter in commands()[command].params if _name(parameter) not in left_out]


def _cases_with(command: str, parameter: Any, values: Iterable[str], inputs: Path) -> Iterator[Case]:
    name = _name(parameter)
    for value in values:
        text = _placed(value) if _is_path(parameter) else value
        given = {name: text if name.startswith("-") else (text,)}
        yield Case(command, name, value, _words(command, BASES[command], inputs, given))


def values_of(parameter: Any) -> tuple[str, ...]:
    """The hostile values of a parameter's type; texts may be paths, and so get some of theirs."""
    kind = _type_of(parameter)
    if kind is str:
        names_a_file = parameter.name in ("platform", "of", "like") or not _name(parameter).startswith("-")
        return TEXT + tuple(map(_placed, PATHS)) if names_a_file else TEXT
    return {Path: PATHS, int: WHOLE, float: REAL}[kind]


def values_with(command: str, parameter: Any) -> tuple[str, ...]:
    """The hostile values that are tried with this command: about every twelfth, so that parameters of a type, which one
    piece of code reads and checks, try all of them between them; `further_cases_of` has the others. They depend on the
    names alone, so that a new option changes none of another."""
    return values_of(parameter)[crc32(f"{command} {_name(parameter)}".encode()) % 12 :: 12]


def _type_of(parameter: Any) -> Any:
    """int of `int | None`, Path of `list[Path]`."""
    kind = parameter.type_descriptor.annotation
    while arguments := [arg for arg in get_args(kind) if arg is not type(None)]:
        kind = arguments[0]
    return kind


def _is_flag(parameter: Any) -> bool:
    return bool(getattr(parameter, "is_flag", False))


def _is_path(parameter: Any) -> bool:
    return _type_of(parameter) is Path


def _name(parameter: Any) -> str:
    """The long form of an option, the name of an argument."""
    return next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])


def _words(command: str, base: Base, inputs: Path, given: dict[str, Any] | None = None) -> tuple[str, ...]:
    given = given or {}
    options = base.options | {name: text for name, text in given.items() if name.startswith("-")}
    arguments = base.arguments | {name: text for name, text in given.items() if not name.startswith("-")}
    flags = {_name(param) for param in commands()[command].params if _is_flag(param)}
    words = [name if name in flags else f"{name}={text}" for name, texts in options.items() for text in _several(texts)]
    rest = [word for argument in arguments.values() for word in _several(argument)]
    filled = [word.replace("{in}", str(inputs)) for word in (*words, *(["--", *rest] if rest else []))]
    return (*command.split(), *filled)


def _placed(path: str) -> str:
    return path if not path or path.startswith("/") or path in PATHS[-2:] else f"{{in}}/{path}"


def _several(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def unprintable(text: str) -> bool:
    """Whether a terminal would do something else than print it."""
    return not text.replace("\n", "").replace("\t", "").isprintable()


def write_inputs(folder: Path) -> None:
    """The files that command lines name."""
    from lepaute.cli.main import main
    from lepaute.measure.archive import ArchiveWriter
    from lepaute.simulate.platform import load_platform
    from lepaute.simulate.platform.schema import platform_text

    data = Path(__file__).parents[1] / "data"
    (folder / "platform.yaml").write_text(platform_text(load_platform("stampede-like")))
    (folder / "platform.xml").write_bytes((data / "simgrid" / "stampede.xml").read_bytes())
    rows = [f"n{node},{cpu},{day},{2e-11 * (1 + 0.01 * (node + cpu) + 0.003 * ((node * 7 + cpu * 5 + day * 3) % 4))}"
            for node in range(4) for cpu in range(2) for day in range(4)]  # fmt: skip
    (folder / "table.csv").write_text("\n".join(["node,cpu,day,mnk,1,sd:mnk", *(f"{row},1e-6,1e-12" for row in rows)]))
    (folder / "durations.txt").write_text("".join(f"{2**k} {1 + 2**k / 1000}\n" for k in range(20)))
    (folder / "experiment.py").write_text(
        "import lepaute\n\n\nclass Nothing(lepaute.Job):\n    def run(self):\n        pass\n"
    )
    (folder / "smpi.trace").write_text("%EventDef PajeDefineContainerType 0\n%EndEventDef\n")
    write_store(folder)
    (folder / "junk").write_bytes(bytes(range(256)) * 40)
    (folder / "junk").chmod(0o755)
    (folder / "locked").write_text("secret")
    (folder / "locked").chmod(0)
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    with ArchiveWriter(folder / "archive.zip", {"kind": "calibration", "created": "2026-11-21"}) as writer:
        writer.add_bytes("raw/block0/p2p.csv", b"a\n1\n")
    assert main(["design", "factorial", "-f", "a=1,2", "-f", "b=3,4", "-o", str(folder / "design.csv")]) == 0
    predict = ["predict", "hpl", "-p", str(folder / "platform.yaml"), "--n", "128", "--nb", "64", "--grid", "2x1"]
    for seed, name in enumerate(("trace", "usual", "usual-3"), 1):
        assert main([*predict, "--runs", "1", "--seed", str(seed), "--trace", str(folder / f"{name}.parquet")]) == 0


def write_store(folder: Path) -> None:
    """A store in which two nodes were measured on twelve days, and the first became slower; and files to ingest."""
    import pandas

    from lepaute.watch import open as open_watch

    rows = [
        ("c", str(node), cpu, f"j{day}", 1.7e9 + 86400.0 * day, "s", "dgemm_rate_flops", 1e12 * slow + 1e9 * (day % 3))
        for node in (1, 2)
        for cpu in (0, 1)
        for day in range(12)
        for slow in [0.9 if node == 1 and day > 7 else 1.0]
    ]
    names = ["cluster", "node", "cpu", "job", "started_s", "stratum", "factor", "value"]
    values = pandas.DataFrame(rows, columns=names)
    (folder / "written").mkdir()
    with open_watch(folder / "written" / "store") as watch:
        watch.store.add_values(values.assign(state="done", archive=""))
    values[values["cpu"] == 0][["node", "started_s", "value"]].to_csv(folder / "values.csv", index=False)
    mapping = (
        "{node: node, date: {column: started_s, form: epoch_s}, factors: {speed_flops: {column: value, unit: flops}}}"
    )
    (folder / "mapping.yaml").write_text(mapping)
    base = "base: {application: {name: hpl, n: 64, grid: 1x2}, platform: ./platform.yaml}\nruns: 2\n"
    factors = "factors: {nb: {path: application.nb, levels: [8, 16]}}\n"
    asked = {
        "whatif": f"{factors}whatif: {{factor: nb}}\n",
        "tune": factors,
        "sensitivity": factors,
        "capacity": "capacity: {catalogue: parts.yaml, nodes: [2]}\n",
    }
    for question, rest in asked.items():
        (folder / f"{question}.yaml").write_text(f"question: {question}\n{base}{rest}")
    (folder / "parts.yaml").write_text("parts: {node: {kind: node, price: 1, watts: 1}}\n")
    (folder / "events.csv").write_text("date,cluster,node,type,description\n2026-11-23,c,1,platform,why\n")
