"""Archives damaged on purpose, at every layer, and all that the command line does with one of a stranger.

Damage below the seal ends at the seal; so most mutants are sealed again, and many get a manifest that agrees with them,
that the layers behind are reached.
"""

import contextlib
import io
import random
import shutil
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from support_archive import Node, experiment_archive, failed_archive

from lepaute.errors import LepauteError
from lepaute.measure.archive import Archive
from lepaute.measure.archive.comparison import compare, comparison_json, comparison_lines
from lepaute.measure.archive.container import seal
from lepaute.measure.archive.documents import MANIFEST, Member, manifest_bytes
from lepaute.measure.archive.extraction import extract
from lepaute.measure.archive.ro_crate import check_crate
from lepaute.measure.archive.screen import first_facts
from lepaute.measure.archive.setups import Setup, setup_of
from mutants.changes import PIECES, changed, value_replaced
from mutants.readers import FAILED, READ, REFUSED, Outcome


def archive_outcomes(first: int, count: int, seed: int, folder: Path) -> Iterator[Outcome]:
    """The outcomes of `count` mutants numbered from `first` on; they depend on seed, first and their place.

    A mutant is `mutant.zip` in the folder until the next; one that fails is kept beside it, and named in the problem.
    """
    originals = [
        experiment_archive(folder / "whole.zip"),
        failed_archive(folder / "failed.zip"),
        experiment_archive(folder / "small.zip", [Node("node1")]),
    ]
    whole = Archive.open(originals[0])
    other, known = setup_of(whole), frozenset(whole.members())
    mutant = folder / "mutant.zip"
    for at, way in enumerate(mutate_archives(originals, mutant, count, seed * 1_000_003 + first)):
        try:
            result = _read_everything(mutant, other, folder / "out", known)
        except Exception:  # noqa: BLE001  what is looked for
            kept = folder.parent / f"failed-{seed}-{first + at}.zip"
            shutil.copy(mutant, kept)
            yield Outcome(first + at, way, FAILED, f"{kept}: {traceback.format_exc(limit=-4)}")
        else:
            yield Outcome(first + at, way, result)


def mutate_archives(originals: list[Path], target: Path, count: int, seed: int) -> Iterator[str]:
    """Writes `count` mutants one after the other to `target`; yields what was done to each. Same seed, same mutants."""
    rng = random.Random(seed)
    files = [path.read_bytes() for path in originals]
    contents = [_members(data) for data in files]
    ways: list[tuple[str, Callable[[], bytes]]] = [
        ("raw bytes", lambda: changed(rng, rng.choice(files), files)[1]),
        ("bytes, sealed again", lambda: _sealed(target, changed(rng, rng.choice(files), files)[1])),
        ("members, in order again", lambda: _built(rng, _changed(rng, rng.choice(contents), contents))),
        ("document, in order again", lambda: _built(rng, _document(rng, rng.choice(contents)))),
        ("manifest or names", lambda: _built(rng, dict(rng.choice(contents)), honest=False)),
    ]
    for _ in range(count):
        # Inner layers hold most of the code: they get most of the mutants.
        way, make = rng.choices(ways, weights=(1, 3, 3, 5, 1))[0]
        target.write_bytes(make())
        if "in order" in way or "names" in way:
            seal(target)
        yield way


def _read_everything(path: Path, other: Setup, folder: Path, known: frozenset[str]) -> str:
    """Shows, verifies, compares, reads the tables of and extracts an archive; REFUSED or READ.

    known: names of members that are not worth extracting again, all but a few (a file costs a millisecond)

    Every step may refuse with a LepauteError, one line of which every character is printable; anything else that is
    raised goes through. Asserts that nothing printed is a terminal's command and that nothing is written outside.
    """
    try:
        archive = Archive.open(path)
    except LepauteError as problem:
        _assert_plain(str(problem))
        return REFUSED
    answer, facts = first_facts(archive)
    for line in (answer, *(text for _, text in facts)):
        _assert_plain(line)
    with _refusing():
        check_crate(archive)
    setup = setup_of(archive)
    comparison = compare(other, setup)
    for everything in (False, True):
        for line in comparison_lines(comparison, setup.unread, everything=everything):
            _assert_plain(line)
    comparison_json(comparison)
    for name in archive.members():
        if name.endswith((".parquet", ".csv")):
            with _refusing(), contextlib.redirect_stderr(io.StringIO()):
                archive.table(name)
    shutil.rmtree(folder, ignore_errors=True)
    with _refusing():
        new = [name for name in archive.members() if name not in known]
        extract(archive, folder / "inside", [*new, *list(archive.members())[:3]])
    assert {entry.name for entry in folder.glob("*")} <= {"inside"}
    return READ


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except LepauteError as problem:
        _assert_plain(str(problem))


def _assert_plain(line: str) -> None:
    assert line.isprintable(), repr(line)[:300]


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return {name: packed.read(name) for name in packed.namelist() if name != MANIFEST}


def _sealed(path: Path, data: bytes) -> bytes:
    """The bytes with a seal that agrees, where there is a record to seal."""
    end = data.rfind(b"PK\x05\x06")
    if end < 0 or end + 22 > len(data):
        return data
    path.write_bytes(data[: end + 20] + b"\0\0")
    seal(path)
    return path.read_bytes()


def _changed(rng: random.Random, members: dict[str, bytes], others: list[dict[str, bytes]]) -> dict[str, bytes]:
    """Members damaged, swapped, dropped, renamed, taken from another archive."""
    made = dict(members)
    for _ in range(rng.choice((1, 2, 5))):
        name, other = rng.choice(list(made)), rng.choice(list(made))
        way = rng.randrange(6)
        if way <= 1:
            _, made[name] = changed(rng, made[name], list(made.values()))
        elif way == 2:
            made[name], made[other] = made[other], made[name]
        elif way == 3 and len(made) > 1:
            del made[name]
        elif way == 4:
            made[other + rng.choice(("", ".csv", "/x", "é", " "))] = made[name]
        else:
            made[name] = rng.choice(list(rng.choice(others).values()))
    return made


def _document(rng: random.Random, members: dict[str, bytes]) -> dict[str, bytes]:
    """One value of a JSON document replaced, or a piece put into a text, or bytes of a table changed."""
    made = dict(members)
    documents = [name for name in made if name.endswith(".json") and "/" not in name]
    name = rng.choice(documents if rng.random() < 0.5 else list(made))
    data = made[name]
    if name.endswith(".json") and rng.random() < 0.8:
        made[name] = value_replaced(rng, data)
    elif rng.random() < 0.5:
        at = rng.randrange(len(data) + 1)
        made[name] = data[:at] + rng.choice(PIECES) + data[at + rng.choice((0, 1, 20)) :]
    else:
        _, made[name] = changed(rng, data, list(made.values()))
    return made


def _built(rng: random.Random, members: dict[str, bytes], *, honest: bool = True) -> bytes:
    """A zip of the members with a manifest; a dishonest one lists or names something else."""
    listed = {name: Member.of(data) for name, data in members.items()}
    manifest = manifest_bytes(listed)
    named = dict(members)
    if not honest:
        way = rng.randrange(4)
        name = rng.choice(list(members))
        if way == 0:
            _, manifest = changed(rng, manifest, [manifest])
        elif way == 1:
            manifest = value_replaced(rng, manifest)
        elif way == 2:
            bad = rng.choice(
                ("../" + name, "/" + name, "C:" + name, name + "/", name + "\\x", "a" * 300, "\x1b[2J", ".")
            )
            named[bad] = named.pop(name)
            manifest = manifest_bytes({**listed, bad: listed[name]})
        else:
            named[name] = rng.choice(list(members.values()))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as packed:
        for name, data in named.items():
            # without the date of today, which would make the same seed give other bytes
            packed.writestr(zipfile.ZipInfo(name), data, packed.compression)
        packed.writestr(zipfile.ZipInfo(MANIFEST), manifest, packed.compression)
    return out.getvalue()
