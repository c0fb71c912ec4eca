"""The source of HPL: where apt is told to look for it, and what is refused."""

import io
import tarfile
from pathlib import Path

import pytest

from lepaute.errors import EnvironmentProblem
from lepaute.measure import hpl_source

STANZA = """\
Types: deb
# a comment
URIs: http://mirror.invalid/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----
"""
THIRD_PARTY = "Types: deb\nURIs: http://other.invalid/node\nSuites: nodistro\nComponents: main\n"


def test_a_deb822_entry_becomes_a_source_entry_of_the_release_alone() -> None:
    lines, stanzas = hpl_source.source_entries("", STANZA + "\n" + THIRD_PARTY, "bookworm")
    assert lines == ""
    assert stanzas.count("Types: deb-src\n") == 1
    assert "Suites: bookworm\n" in stanzas
    # A key may stand in the stanza itself, on lines that start with a blank; without it apt trusts nothing.
    assert "Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n" in stanzas
    assert "other.invalid" not in stanzas


def test_a_one_line_entry_keeps_its_options_and_third_parties_are_left_out() -> None:
    text = (
        "# deb http://old.invalid/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] http://mirror.invalid/debian bookworm main\n"
        "deb-src http://mirror.invalid/debian bookworm main\n"
        "deb http://cloud.invalid/apt sdk-bookworm main\n"
    )
    lines, _ = hpl_source.source_entries(text, "", "bookworm")
    expected = "[arch=amd64 signed-by=/usr/share/keyrings/x.gpg] http://mirror.invalid/debian bookworm main"
    assert lines == f"deb-src {expected}\n"


def test_a_given_tarball_with_another_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "hpcc.tar.gz"
    wrong.write_bytes(b"not HPL")
    monkeypatch.setenv(hpl_source.OVERRIDE, str(wrong))
    with pytest.raises(EnvironmentProblem, match=f"{wrong} has SHA-256 .*, expected 0a6fef7ab9f3"):
        hpl_source.hpcc_tarball()


def _tarball(path: Path, members: dict[str, bytes | str]) -> Path:
    """An archive of files (bytes) and symbolic links (str: the target)."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


def test_unpacking_takes_what_hpl_needs_and_nothing_else(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {"hpcc/hpl/include/hpl.h": b"h", "hpcc/hpl/src/a/b.c": b"c", "hpcc/FFT/f.c": b""}
    hpl_source.extract(_tarball(tmp_path / "a.tar.gz", members), tmp_path / "out")
    found = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert found == ["hpl/include/hpl.h", "hpl/src/a/b.c"]


@pytest.mark.parametrize(
    "members",
    [
        {"hpcc/hpl/include/hpl.h": b"", "hpcc/hpl/src/../../../evil.c": b"x"},
        {"hpcc/hpl/include/hpl.h": b"", "hpcc/hpl/src/link.c": "/etc/passwd"},
    ],
    ids=["upwards", "link"],
)
def test_unpacking_refuses_members_that_leave_the_folder(tmp_path: Path, members: dict[str, bytes | str]) -> None:
    with pytest.raises(EnvironmentProblem, match="is not a plain file"):
        hpl_source.extract(_tarball(tmp_path / "a.tar.gz", members), tmp_path / "inside" / "out")
    assert not list(tmp_path.rglob("evil.c"))


def test_unpacking_refuses_what_is_no_archive_or_holds_no_hpl(tmp_path: Path) -> None:
    (tmp_path / "text.tar.gz").write_text("hello")
    with pytest.raises(EnvironmentProblem, match="cannot be unpacked"):
        hpl_source.extract(tmp_path / "text.tar.gz", tmp_path / "out")
    with pytest.raises(EnvironmentProblem, match="does not contain HPL"):
        hpl_source.extract(_tarball(tmp_path / "b.tar.gz", {"other/readme": b""}), tmp_path / "out")
