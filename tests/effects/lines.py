"""Command lines that have an answer, and options of which each changes it: the tables `*.txt` of this folder.

$ predict hpl --platform={data}/platforms/small.yaml --n=400   a command line; {in}: inputs, {data}: tests/data
--nb=32                             a further option, or another value of one: it has to change the answer (standard
                                    output, with --json too, or a file), to be named in it, or to be refused by name
--mapping-seed=2 | --mapping=random  what both command lines have beside; | !--n leaves an option out of both
= --workers=2  # how many at once   has no effect, for this reason: the answer has to be equal
- --ssh-config @hpl  # needs nodes  is not tried, for this reason
@hpl                                the rows of this name, which begin with `@hpl:`; and for each other option of HPL
                                    that has no row here, one with another value than its default
! $ emulate ...                     as $, with the programs of this machine on PATH, which are none otherwise
key:budget.seconds=5                sets a key of the file that the command line names as {keys}/NAME, a YAML of {in}
{store}                             a store of its own, of measurements until November 2023; {recent}: until now
"""

import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas
import yaml
from hostile.cases import Case, _name, commands, write_inputs
from support_comparisons import campaign
from support_fit import write_calibration
from support_hpl_options import other_words

from lepaute.cli.main import main
from lepaute.kit.json_values import to_json
from lepaute.measure.archive import ArchiveWriter
from lepaute.measure.clocks.request import SYNCHRONISATIONS, ClockFacts, ClockRequest
from lepaute.measure.design import full_factorial
from lepaute.watch import open as open_watch

FOLDER = Path(__file__).parent
DATA = FOLDER.parent / "data"
#: What differs between two runs of one command line: dates, digests, folders, how long it took, how much memory.
NOISE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?[.\d]*(Z|[+-]\d\d:?\d\d| UTC)?"
    r"|\b(?=[0-9e]*[abcdf])[0-9a-f]{12,64}\b|/\S*/(cases/\d+/(work|tmp|home)|in0?-variants/\d+)/?"
    r'|\S+ s of CPU time|"(wall_s|cpu_s|user_s|peak_rss_bytes|engine_bytes|created|command)": [^\n]*'
)
#: Files that only quote what was asked, or tell in how many parts the answer was stored.
QUOTED = {"study.yaml", "report.html", "store.json"}
EQUAL = "is ignored"
#: The block of the options of HPL.
HPL = "@hpl"
#: Exit statuses of what has an answer.
ANSWERS = {0, 1, 3, 4}
#: hostile/test_json_output.py and laws/test_outputs_need_force.py try them.
ELSEWHERE = ("--help", "--json", "--force")


class Row(NamedTuple):
    """Words that are tried on a command line; beside : words that it has then anyway; reason : of no effect."""

    tried: tuple[str, ...]
    beside: tuple[str, ...] = ()
    reason: str = ""

    @property
    def option(self) -> str:
        """The name, or the key with dots in between."""
        return self.tried[-1].removeprefix("key:").split("=")[0]


@dataclass(frozen=True)
class Line:
    """A command line with its rows; untried : options, each with the reason."""

    command: str
    words: tuple[str, ...]
    rows: tuple[Row, ...]
    untried: dict[str, str]
    on_machine: bool

    def __str__(self) -> str:
        return " ".join((self.command, *self.words))[:100]

    def case(self, inputs: Path, *added: str) -> Case:
        """With these words, in the place of those of the same option."""
        replaced = {word.removeprefix("!").split("=")[0] for word in added if word.lstrip("!").startswith("--")}
        at = self.words.index("--") if "--" in self.words else len(self.words)
        options = [word for word in self.words[:at] if word.split("=")[0] not in replaced]
        kept = [word for word in added if word.startswith("--")]
        keys = [word.removeprefix("key:").replace("{in}", str(inputs)) for word in added if word.startswith("key:")]
        words = [*self.command.split(), *options, *kept, *self.words[at:]]
        named = [re.sub(r"\{keys\}/(\S+)", lambda name: str(_variant(inputs, name[1], keys)), word) for word in words]
        named = [re.sub(r"\{(store|recent)\}", lambda name: _new_store(inputs, name[1]), word) for word in named]
        filled = tuple(word.replace("{in}", str(inputs)).replace("{data}", str(DATA)) for word in named)
        return Case(self.command, "", "", filled)


def _variant(inputs: Path, name: str, settings: Sequence[str]) -> Path:
    """The file with these keys set, each as KEY.KEY=VALUE in YAML."""
    content = yaml.safe_load((inputs / name).read_text())
    for setting in settings:
        path, _, value = setting.partition("=")
        *above, last = path.split(".")
        place = content
        for key in above:
            place = place.setdefault(key, {})
        place[last] = yaml.safe_load(value)
    text = yaml.safe_dump(content, sort_keys=False)
    folder = inputs.with_name(f"{inputs.name}-variants") / str(crc32(text.encode()))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def _new_store(inputs: Path, name: str) -> str:
    """A copy of the store, which no other command line has changed."""
    variants = inputs.with_name(f"{inputs.name}-variants")
    variants.mkdir(exist_ok=True)
    store = variants / str(sum(1 for _ in variants.iterdir()))
    shutil.copytree(inputs / name, store)
    return str(store)


def _write_store(folder: Path, last_s: float) -> None:
    """Two clusters on sixty days until then, an event and an outlier: a node became slower, another one did lately."""
    rows = [
        (cluster, node, cpu, f"j{day}", last_s - 86_400 * (60 - day), "s", factor, mean * slow * noise)
        for cluster, nodes in (("c", "12345"), ("d", "12"))
        for node in nodes
        for cpu in (0, 1)
        for day in range(60)
        for factor, mean in (("dgemm_rate_flops", 1e12), ("power_W", 300.0))
        for slow in [
            0.9 - 0.05 * (cluster == "d") if node in "15" and day > 40 else 0.97 if node == "2" and day > 56 else 1.0
        ]
        for noise in [1 + 1e-3 * ((day * 7 + int(node) * 5 + cpu * 3 + len(factor)) % 11 - 5)]
    ]
    names = ["cluster", "node", "cpu", "job", "started_s", "stratum", "factor", "value"]
    with open_watch(folder) as watch:
        watch.store.add_values(pandas.DataFrame(rows, columns=names).assign(state="done", archive=""))
    day = time.strftime("%Y-%m-%d", time.gmtime(last_s - 86_400 * 50))
    add = ["watch", "events", "add", "--store", str(folder), "--cluster=c", "--author=me", f"--date={day}"]
    for more in (
        ["--node=3", "--reason=new"],
        ["--node=4", "--reason=hot", "--outlier=j10"],
        ["--node=2", "--reason=no"],
    ):
        assert main([*add, *more]) == 0


@cache
def all_lines() -> list[Line]:
    """Of all tables."""
    blocks: dict[str, list[str]] = {}
    for path in sorted(FOLDER.glob("*.txt")):
        head = ""
        for text in path.read_text().splitlines():
            if text.startswith(("$ ", "! $ ")) or re.fullmatch(r"@\w+:", text):
                head = text
                blocks[head] = []
            elif text and not text.startswith("# "):
                blocks[head].append(text)
    return [_line(head, blocks) for head in blocks if not head.startswith("@")]


def _line(head: str, blocks: dict[str, list[str]]) -> Line:
    words = shlex.split(head.partition("$ ")[2])
    command = max((name for name in commands() if words[: len(name.split())] == name.split()), key=len)
    rows, untried = [], {}
    for text in _rows(head, blocks):
        row, _, reason = text.partition("  # ")
        assert bool(reason) == row.startswith(("= ", "- ")), f"{text}: {head}"
        if row.startswith("- "):
            names = [name for word in row[2:].split() for name in _names(word, blocks)]
            untried |= dict.fromkeys(names, reason)
        else:
            tried, _, beside = row.removeprefix("= ").partition(" | ")
            rows.append(Row(tuple(shlex.split(tried)), tuple(shlex.split(beside)), reason))
    if HPL in blocks[head]:
        tried = {row.option for row in rows}
        rows += [Row((f"{name}={word}",)) for name, word in other_words().items() if name not in tried]
    return Line(command, tuple(words[len(command.split()) :]), tuple(rows), untried, head.startswith("!"))


def _names(word: str, blocks: dict[str, list[str]]) -> list[str]:
    """An option, or those of a block."""
    if not word.startswith("@"):
        return [word]
    names = [re.findall(r"--[\w-]+", row)[0] for row in _rows(f"{word}:", blocks)]
    return [*names, *(other_words() if word == HPL else ())]


def _rows(head: str, blocks: dict[str, list[str]]) -> Iterator[str]:
    for text in blocks[head]:
        if text.startswith("@"):
            yield from _rows(f"{text}:", blocks)
        else:
            yield text


def options_of(command: str) -> dict[str, Any]:
    """The options of a command that are tried here, by their long names."""
    named = {_name(parameter): parameter for parameter in commands()[command].params}
    return {name: option for name, option in named.items() if name.startswith("--") and name not in ELSEWHERE}


def ignored(line: Line, server: Any) -> list[str]:
    """What is wrong with a command line: options that have no effect and are not named, or an undeclared effect."""
    verdicts = _verdicts(line, line.rows, [], server)
    if any("--json" in option.opts for option in commands()[line.command].params):
        again = [row for row in line.rows if verdicts[row] in (EQUAL, "")]
        verdicts |= _verdicts(line, [row for row in again if row.reason or verdicts[row] == EQUAL], ["--json"], server)
    return [f"{' '.join(row.tried)} {verdict}: {line}" for row, verdict in verdicts.items() if verdict]


def _verdicts(line: Line, rows: Sequence[Row], more: Sequence[str], server: Any) -> dict[Row, str]:
    """What is wrong with the answer to each of these rows; nothing where it is right."""
    bases = dict.fromkeys(row.beside for row in rows)
    cases = [line.case(server.inputs, *beside, *more) for beside in bases for _ in range(2)]
    cases += [line.case(server.inputs, *row.beside, *row.tried, *more) for row in rows]
    answers = server.run(cases, os.environ["PATH"] if line.on_machine else "/nowhere")
    usual = {beside: answers[2 * at : 2 * at + 2] for at, beside in enumerate(bases)}
    tried = zip(rows, answers[2 * len(bases) :], strict=True)
    return {row: _verdict(row, usual[row.beside], answer) for row, answer in tried}


def _verdict(row: Row, usual: Sequence[dict[str, Any]], answer: dict[str, Any]) -> str:
    """What is wrong with an answer; usual: two answers to the same command line without the option."""
    if not {one["status"] for one in usual} <= ANSWERS:
        return f"cannot be tried: {usual[0]['stderr'][-160:].strip()}"
    if answer["status"] not in (*ANSWERS, 2):
        return f"ends with status {answer['status']}: {answer['stderr'][-300:]}"
    if answer["status"] == 2:
        return "" if _refused(row, answer["stderr"]) else f"is refused: {answer['stderr'][:300].strip()}"
    named = _named(row.option, answer) and not _named(row.option, usual[0])
    differs = differences(row, *usual, answer)
    if row.reason:
        return f"has an effect: {differs[:3]}" if differs else ""
    return "" if differs or named else EQUAL


def _refused(row: Row, message: str) -> bool:
    """Whether a refusal names the option, or quotes what it was given."""
    name, _, value = row.tried[-1].removeprefix("--").removeprefix("key:").partition("=")
    named = rf"(?<![\w-])(--)?{name.split('.')[-1]}(?![\w-])|'{re.escape(value)}'"
    return not row.reason and bool(re.search(named, message))


def _named(option: str, answer: dict[str, Any]) -> bool:
    text = answer["stderr"] + _without_echo(answer["stdout"], option)
    return bool(re.search(rf"(?<![\w-]){option}(?![\w-])", text))


def _without_echo(text: str, option: str) -> str:
    """Where a command line or a value is only quoted, this option is none of the answer."""
    key = option.removeprefix("--").replace("-", "_").split(".")[-1]
    return re.sub(rf'\s*{option}[= ][^\s<&]+|"{key}": [^\n{{[]*', "", text)


def differences(row: Row, first: dict[str, Any], second: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """Where an answer differs from two of one command line by more than these do."""
    if answer["status"] != first["status"]:
        return [f"status {answer['status']}"]
    before, again, after = (_parts(each, row.tried[-1], row.option) for each in (first, second, answer))
    found = [f"{name}: there or not" for name in before.keys() ^ after.keys()] if before.keys() == again.keys() else []
    for name in before.keys() & after.keys() & again.keys():
        lines, repeated, others = before[name], again[name], after[name]
        if len(lines) != len(repeated):
            continue
        if len(lines) != len(others):
            found.append(f"{name}: {len(others)} lines for {len(lines)}")
        else:
            found += [
                f"{name}: {now[:80]!r} for {then[:80]!r}"
                for then, once_more, now in zip(lines, repeated, others, strict=True)
                if then == once_more != now
            ]
    return found


def _parts(answer: dict[str, Any], tried: str, option: str) -> dict[str, list[str]]:
    """The lines of standard output and of each file, without what differs between runs, and what quotes the option."""
    texts = {"standard output": answer["stdout"], **answer["files"]}
    if option == "--details":  # caveats are written there
        texts["standard error"] = answer["stderr"]
    # The name of an output is the only thing in which its values may differ.
    name_of_output = tried.partition("=")[2].split(".")[0] if option == "--output" else ""

    def plain(text: str) -> str:
        text = NOISE.sub("", _without_echo(text, option))
        return text.replace(name_of_output, "out") if name_of_output else text

    kept = {name: text for name, text in texts.items() if name.split("/")[-1] not in QUOTED}
    return {plain(name): [" ".join(line.split()) for line in plain(text).splitlines()] for name, text in kept.items()}


def _write_clocks(path: Path) -> None:
    """Errors of three methods, of which the quickest is the worst after a while."""
    some = {"SKaMPI": (0.002, 200, 4000), "HCA3": (1.2, 300, 500), "JK": (0.6, 310, 520)}
    rows = [
        {"mpirun": mpirun, "method": method, "rank": 1, "after_s": after_s, "checked_s": after_s, "duration_s": took_s}
        | {"shortest_error_ns": error_ns * 1.01**mpirun, "half_round_trip_ns": 100.0, "true_error_ns": 0.0}
        for mpirun in range(11)
        for method, (took_s, *errors_ns) in some.items()
        for after_s, error_ns in zip((0.0, 5.0), errors_ns, strict=True)
    ]
    request = ClockRequest(methods=tuple(some), after_s=(0.0, 5.0))
    facts = ClockFacts(asked=request, ranks=2, nodes=("here",))
    with ArchiveWriter(path, {"kind": "clocks", "created": "2026-11-27", "clocks": to_json(facts)}) as archive:
        archive.add_table(SYNCHRONISATIONS, pandas.DataFrame(rows))


def write_files(folder: Path) -> None:
    """Those that command lines name, beside those of the hostile values."""
    write_inputs(folder)
    for path in (FOLDER / "inputs").iterdir():
        (folder / path.name).write_text(path.read_text().replace("{in}", str(folder)).replace("{data}", str(DATA)))
    platform = ["-p", str(DATA / "platforms" / "small.yaml"), "--force"]
    hpl = ["predict", "hpl", *platform, "--n", "256", "--nb", "64", "--grid", "2x1", "--runs", "1"]
    assert main([*hpl, "--trace", str(folder / "other.parquet")]) == 0
    write_calibration(folder / "calibration.zip")
    campaign(folder / "two.zip", sizes=(8, 64), fewer_ranks=(1,))
    campaign(folder / "three.zip", ("a", "b", "c"))
    _write_clocks(folder / "clocks.zip")
    _write_store(folder / "store", 1_700_000_000.0)
    _write_store(folder / "recent", time.time())
    withdraw = ["watch", "events", "withdraw", "--store", str(folder / "store"), "--author=me", "--reason=x"]
    assert main([*withdraw, "609dc43e"]) == 0
    about = {"kind": "experiment", "created": "2026-11-21T00:00:00", "phases": [{"name": "run", "duration_s": 3.0}]}
    with ArchiveWriter(folder / "experiment.zip", about) as archive:
        design = full_factorial({"ranks": [2, 4], "threads": [1, 2]}, replications=8, seed=1)
        table = design.to_frame().assign(design_row=range(32), room=[1, 2] * 16)
        table["duration_s"] = 1e-3 * table["threads"] * (1 + 0.01 * np.random.default_rng(4).normal(size=32))
        archive.add_table("observations/observations.parquet", table.assign(other_s=1 / table["duration_s"]))
        archive.add_bytes("design.csv", design.to_csv().encode())
