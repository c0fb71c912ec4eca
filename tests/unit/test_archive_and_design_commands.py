"""`lepaute archive` and `lepaute design` from the command line: output, exit status, one line for each error."""

import json
from pathlib import Path

import pytest

from lepaute.archive import ArchiveWriter
from lepaute.cli.main import main


@pytest.fixture
def archive_file(tmp_path: Path) -> Path:
    path = tmp_path / "c.zip"
    with ArchiveWriter(path, {"kind": "calibration", "created": "2026-11-21", "host": "node-1"}) as writer:
        writer.add_bytes("raw/block0/p2p.csv", b"a\n1\n")
    return path


def test_show_and_verify_name_the_id_and_the_members(archive_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["archive", "show", str(archive_file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["metadata"]["host"] == "node-1"
    assert shown["members"]["raw/block0/p2p.csv"]["size_bytes"] == 4
    assert main(["archive", "show", str(archive_file)]) == 0
    assert "raw/block0/p2p.csv" in capsys.readouterr().out
    assert main(["archive", "verify", str(archive_file)]) == 0
    assert shown["id"][:12] in capsys.readouterr().out
    missing = archive_file.with_name("none.zip")
    assert main(["archive", "verify", str(archive_file), str(missing), "--json"]) == 2
    good, bad = json.loads(capsys.readouterr().out)["archives"]
    assert (good["whole"], good["id"], bad["whole"], bad["path"]) == (True, shown["id"], False, str(missing))
