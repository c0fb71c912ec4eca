"""`lepaute archive` and `lepaute design` from the command line: output, exit status, one line for each error."""

from pathlib import Path

import pytest

from lepaute.measure.archive import ArchiveWriter


@pytest.fixture
def archive_file(tmp_path: Path) -> Path:
    path = tmp_path / "c.zip"
    with ArchiveWriter(path, {"kind": "calibration", "created": "2026-11-21", "host": "node-1"}) as writer:
        writer.add_bytes("raw/block0/p2p.csv", b"a\n1\n")
    return path


def test_show_and_verify_name_the_id_and_the_members(archive_file, output_of, json_of):
    shown = json_of("archive", "show", archive_file, "--json")
    assert shown["metadata"]["host"] == "node-1"
    assert shown["members"]["raw/block0/p2p.csv"]["size_bytes"] == 4
    assert "raw/block0/p2p.csv" in output_of("archive", "show", archive_file)
    assert shown["id"][:12] in output_of("archive", "verify", archive_file)
    missing = archive_file.with_name("none.zip")
    good, bad = json_of("archive", "verify", archive_file, missing, "--json", status=2)["archives"]
    assert (good["whole"], good["id"], bad["whole"], bad["path"]) == (True, shown["id"], False, str(missing))
