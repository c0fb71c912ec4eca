"""Platforms that were checked before: what is read from the cache is what a check makes, and nothing else is."""

import os
import sys
from pathlib import Path

import pytest
from support_limits import ran

from lepaute.errors import PlatformError
from lepaute.simulate.platform import io, load_platform, shipped_names
from lepaute.simulate.platform.io import SHIPPED_FOLDER, parse_platform


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where platforms are kept, which is not there yet."""
    monkeypatch.setenv("LEPAUTE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "platforms"


def test_a_platform_from_the_cache_is_that_of_its_text(cache: Path) -> None:
    for number, path in enumerate(sorted(SHIPPED_FOLDER.glob("*.yaml")), start=1):
        first, again = load_platform(path), load_platform(path)
        assert len(list(cache.glob("*.json"))) == number
        made = parse_platform(path.read_text(encoding="utf-8"))
        assert repr(again.model_dump()) == repr(first.model_dump()) == repr(made.model_dump())
        assert (again, again.sha256) == (made, made.sha256)
        assert again.kernels[0].pieces[0] == made.kernels[0].pieces[0]


@pytest.mark.parametrize("damage", [b"", b"x" * 100, None])
def test_what_is_damaged_in_the_cache_is_made_anew(cache: Path, damage: bytes | None) -> None:
    whole = load_platform("stampede-like")
    (file,) = cache.glob("*.json")
    content = file.read_bytes()
    flipped = content[:900] + bytes([content[900] ^ 1]) + content[901:]
    file.write_bytes(flipped if damage is None else damage)
    assert load_platform("stampede-like") == whole
    assert file.read_bytes() == content


def test_a_text_that_changes_and_sources_that_change_are_checked(cache, tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    text = (SHIPPED_FOLDER / "stampede-like.yaml").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    assert load_platform(path).nodes.count > 1
    path.write_text(text.replace("format: lepaute-platform/1", "format: lepaute-platform/9"), encoding="utf-8")
    with pytest.raises(PlatformError, match=r"mine\.yaml:1: format is 'lepaute-platform/9'"):
        load_platform(path)
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(io, "_sources", lambda: "others")
    load_platform(path)
    assert len(list(cache.glob("*.json"))) == 2


def test_no_cache_is_no_trouble_and_a_full_one_loses_its_oldest(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.parent.write_text("a file in the place of the folder")
    assert load_platform("dahu").name == "dahu-2020-01"
    cache.parent.unlink()
    monkeypatch.setattr(io, "MAX_KEPT", 3)
    for name in shipped_names():
        load_platform(name)
    assert len(list(cache.glob("*.json"))) == 3


def test_a_second_prediction_checks_nothing_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from lepaute.cli.main import main\n"
        "main('predict hpl -p dahu --n 1k --nb 128 --grid 1x2 --runs 1'.split())\n"
        "heavy = ('pydantic', 'yaml', 'numpy', 'pandas', 'scipy', 'rich', 'tempfile', 'concurrent.futures')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    outputs = [
        ran([sys.executable, "-c", code], check=True, env=os.environ | {"LEPAUTE_HOME": str(tmp_path)})
        for _ in range(2)
    ]
    assert outputs[0].stdout == outputs[1].stdout
    assert outputs[1].stderr.splitlines()[-1] == "[]"
