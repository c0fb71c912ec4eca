"""Command lines drawn at random: one to four changes to one that is right, files damaged, options of hostile values.

    PYTHONPATH=src:tests .venv/bin/python tests/hostile/random_lines.py FIRST LAST FOLDER

runs the sets numbered FIRST to LAST - 1, of 1,000 lines each, and prints what is wrong with how any ended: anything but
an exit status below 5 and at most one line of refusal; a traceback; more than 10 s of CPU time; control characters; a
file half written, left behind or overwritten without --force. FOLDER/in has the inputs, for trials from the shell; they
are made by the seed FIRST unless they are there.
"""

import os
import random
import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from effects.lines import DATA, all_lines, write_files
from hostile.cases import BASES, PATHS, REAL, TEXT, WHOLE, Case, _is_flag, _is_path, _name, _type_of, _words, commands
from hostile.complaints import complaints
from hostile.refusals import serving
from hostile.server import TOGETHER
from mutants.changes import changed

#: Lines of a set.
SET = 1000
MAX_CPU_S = 10.0
#: Than `lepaute completion bash`.
MORE_BYTES = 512 << 20
#: Beside those of `cases`.
NUMBERS = (
    *WHOLE,
    *REAL,
    "1e999",
    "-0",
    "1_0",
    "٣",
    "0x10",
    "+5",
    " 5",
    "5 ",
    "1e-400",
    "9223372036854775808",
    "1/3",
    "5%",
)
ODD = (
    "-",
    "--",
    "/dev/full",
    "/dev/zero",
    "/dev/stdin",
    "a\nb",
    "é—.csv",
    "%s{x}",
    "$(x)",
    "'\"",
    "file:///x",
    "[/]",
    "~",
)
#: Outputs that are there already: nothing may touch them without --force, and nothing half.
KEPT = {f"kept.{ending}": "kept\n" for ending in ("csv", "yaml", "zip", "png", "html", "xml", "parquet", "json", "svg")}
NAMES = ("plain", "a\nb", "ü —", "-dash", "x" * 200, "$(x)", "' \"", "%s{x}", "[red]", "=", "#", "\udcff")
OUTPUTS = ("--output", "--report", "--plot", "--csv")


def write_random_files(folder: Path, seed: int) -> None:
    """Those of the tables of effects, those of tests/data, and damaged ones of both in `damaged/`."""
    with redirect_stdout(StringIO()):
        write_files(folder)
    shutil.copytree(DATA, folder / "data")
    rng = random.Random(seed)
    places = [each for each in sorted(folder.rglob("*")) if each.is_file() and os.access(each, os.R_OK)]
    sound = [place for place in places if place.name != "locked" and place.stat().st_size < 200_000]
    others = [each.read_bytes() for each in sound]
    (folder / "damaged").mkdir()
    for number, (path, data) in enumerate(zip(sound, others, strict=True)):
        ways = (
            *(data[: len(data) // 2], data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + data, b"", data * 3),
            *(data.replace(b",", b"\0,"), data.decode("latin-1").encode("utf-16")),
        )
        for name in range(3):
            made = changed(rng, data, others)[1] if name else rng.choice(ways)
            (folder / "damaged" / f"{number}.{name}{rng.choice(NAMES)}{path.suffix}").write_bytes(made)
    for each in (folder, *(path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())):
        if "written" not in each.parts:
            each.chmod(0o555)


@cache
def starts() -> dict[str, list[tuple[str, ...]]]:
    """Right command lines of each command."""
    lines = {command: [_words(command, base, Path("{in}"))] for command, base in BASES.items()}
    for line in all_lines():
        lines[line.command].append((*line.command.split(), *line.words))
    return lines


@cache
def tried() -> list[str]:
    """Options with values that some command takes."""
    return sorted({word for line in all_lines() for row in line.rows for word in row.tried if word.startswith("--")})


def filled(word: str, inputs: Path) -> str:
    """With the places that the tables name."""
    places = {"in": inputs, "data": inputs / "data", "keys": inputs, "store": inputs / "store"}
    return word.format_map({**places, "recent": inputs / "written" / "store"}) if re.search(r"\{\w+\}", word) else word


def _at(words: list[str]) -> int:
    return words.index("--") if "--" in words else len(words)


@dataclass(frozen=True)
class Changes:
    """Makes changes to the words of a command line; files: those that it may name."""

    rng: random.Random
    command: str
    inputs: Path
    files: list[str]

    def change(self, words: list[str]) -> list[str]:
        """One of them, options oftener."""
        ways = (self._option, self._option, self._option, self._argument, self._damage, self._damage, self._mistype)
        return self.rng.choice(ways)(words)

    def _option(self, words: list[str]) -> list[str]:
        choice, options = self.rng.choice, [_name(param) for param in commands()[self.command].params]
        if not (options := [name for name in options if name.startswith("--") and name != "--notify"]):
            return [*words, "--nonsense"]  # --notify sends messages
        name = choice(options)
        option = next(param for param in commands()[self.command].params if _name(param) == name)
        alike = [word for word in tried() if word.split("=")[0] == name]
        if alike and choice((True, False)):
            word = filled(choice(alike), self.inputs)
        elif _is_flag(option) and self.rng.random() < 0.9:
            word = name
        elif name in OUTPUTS or (_is_path(option) and self.rng.random() < 0.2):
            word = f"{name}={choice((*KEPT, 'out', 'new/x', '.', '/dev/full', '-', 'x' * 250 + '.csv', 'a b.csv'))}"
        else:
            word = f"{name}={self._value(_type_of(option))}"
        kept = [each for each in words[: _at(words)] if each.split("=")[0] != name or self.rng.random() < 0.1]
        return [*kept, word, *words[_at(words) :]]

    def _argument(self, words: list[str]) -> list[str]:
        at, value = _at(words), self._value(self.rng.choice((str, Path)))
        rest = words[at + 1 :]
        place = self.rng.randrange(len(rest) + 1)
        put = self.rng.choice(([value], []))
        return [*words[:at], "--", *rest[:place], *put, *rest[place + self.rng.choice((0, 1)) :]]

    def _damage(self, words: list[str]) -> list[str]:
        """Another file of the same ending in the place of one."""
        if not (places := [number for number, word in enumerate(words) if "/" in word]):
            return words
        number = self.rng.choice(places)
        name, sign, path = words[number].rpartition("=")
        alike = [file for file in self.files if file.endswith(Path(path).suffix)] or self.files
        other = self.rng.choice([each for each in alike if "/damaged/" in each] or alike)
        return [*words[:number], f"{name}{sign}{other}", *words[number + 1 :]]

    def _mistype(self, words: list[str]) -> list[str]:
        if not words:
            return ["--nonsense"]
        at = self.rng.randrange(len(words))
        name, sign, value = words[at].partition("=")
        mistyped = os.fsdecode(changed(self.rng, os.fsencode(value if sign else name), [b"x"])[1])
        # Nothing of the machine's: no other absolute path, no folder above.
        again = (
            words[at] if "/" in words[at] + mistyped or ".." in mistyped else f"{name if sign else ''}{sign}{mistyped}"
        )
        ways = ([], [words[at]] * 2, [name], [name, value], [again], [again], [words[at].upper()])
        return [*words[:at], *self.rng.choice(ways), *words[at + 1 :]]

    def _value(self, kind: object) -> str:
        """Mostly of the type, of another one else."""
        paths = [path if not path or path.startswith("/") else f"{self.inputs}/{path}" for path in PATHS[:-2]]
        pools: dict[object, Sequence[str]] = {int: NUMBERS, float: NUMBERS, Path: [*paths, *PATHS[-2:], *KEPT]}
        right = pools.get(kind, TEXT)
        return self.rng.choice(self.rng.choice((right, right, NUMBERS, ODD, TEXT, self.files, self.files)))


def random_cases(number: int, inputs: Path, count: int = SET) -> Iterator[Case]:
    """The lines of this set."""
    rng = random.Random(number)
    files = [str(path) for path in sorted(inputs.rglob("*")) if path.is_file()]
    for _ in range(count):
        changes = Changes(rng, rng.choice(sorted(BASES)), inputs, files)
        start = rng.choice(starts()[changes.command])[len(changes.command.split()) :]
        words = [filled(word, inputs) for word in start]
        for _ in range(rng.choice((1, 1, 2, 3, 4))):
            words = changes.change(words)
        if changes.command.startswith("study ") and "--scheduler=threads" in start:  # as processes, minutes each
            words = ["--scheduler=threads", *(word for word in words if not word.startswith("--sc"))]
        words = [word.replace("\0", "")[:130_000] for word in words]
        before = words[words.index("--json") - 1] if "--json" in words[1 : _at(words)] else "--"
        is_json = "=" in before or not before.startswith("--")  # else it may be a value
        yield Case(changes.command, "--json" if is_json else "", "", (*changes.command.split(), *words))


def enumerated(first: int, last: int, inputs: Path, count: int) -> Iterator[tuple[int, list[Case]]]:
    """The number of a set, and those of its lines that a process of the server runs, which begins with a plain one."""
    for number in range(first, last):
        lines = random_cases(number, inputs, count)
        while some := list(islice(lines, TOGETHER - 1)):
            yield number, [Case("completion", "", "", ("completion", "bash")), *some]


def wrong_with(case: Case, answer: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    """As of every command line, but that several statuses are right, and that any line may take more memory."""
    more: dict[str, Any] = {
        "status": min(answer["status"], 1) if answer["status"] in (0, 1, 3, 4) else answer["status"]
    }
    same = {"status": answer["status"], "memory_bytes": usual["memory_bytes"] + MORE_BYTES}
    lines = answer["stderr"].splitlines()
    if case.command in ("platform check", "archive verify") and all(line.startswith("lepaute: ") for line in lines):
        more["stderr"] = lines[0] if lines else ""  # one for each thing that is wrong
    usual_names = (str(parameter.default) for parameter in commands()[case.command].params)
    wrong = complaints(replace(case, words=(*case.words, *usual_names)), answer | more, same)
    touched = [name for name in answer["touched"] if answer["status"] == 2 or "--force" not in case.words]
    return wrong + ([f"changed, of what was there: {touched}"] if touched else [])


def wrong_lines(first: int, last: int, folder: Path, count: int = SET) -> Iterator[str]:
    """Runs these sets; what is wrong, with its command line."""
    inputs = folder / "in"
    is_new = not inputs.exists()
    inputs.mkdir(parents=True, exist_ok=True)
    with serving(inputs, folder, lambda inputs: write_random_files(inputs, first) if is_new else None) as server:
        for number, cases in enumerated(first, last, inputs, count):
            answers = server.run(cases, most_cpu_s=MAX_CPU_S, most_s=6 * MAX_CPU_S, kept=KEPT, more_bytes=MORE_BYTES)
            statuses = Counter(each["status"] for each in answers[1:])
            print(f"set {number}: {len(cases) - 1} lines, {dict(statuses)}", flush=True)
            for case, answer in zip(cases, answers, strict=True):
                for each in wrong_with(case, answer, answers[0]):
                    yield f"{each}\n    lepaute {shlex.join(case.words)[:1000]}"


if __name__ == "__main__":
    bad = 0
    for text in wrong_lines(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])):
        bad = 1
        print(text.encode(errors="backslashreplace").decode(), flush=True)
    sys.exit(bad)
