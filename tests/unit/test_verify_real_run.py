"""The real HPL: where its source comes from, what it prints, and what this machine cannot run."""

import io
import tarfile
from pathlib import Path

import pytest

from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure import hpl_source
from lepaute.measure.verify.real_run import check_machine, parse_hpl_output
from lepaute.simulate import Hpl

HPL_OUTPUT = """
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR12R2C2        2000   128     1     2               0.09              6.098e+01
================================================================================
"""


@pytest.mark.parametrize(
    ("time", "rate", "duration_s"),
    [
        # 0.09 s is known to 5.6 %, 6.098e+01 Gflop/s to 0.01 %: 2/3 2000^3 + 3/2 2000^2 = 5.33933e9 flop / 60.98e9.
        ("    0.09", "6.098e+01", pytest.approx(5.339333333e9 / 60.98e9, rel=1e-9)),
        ("54321.98", "9.829e-05", 54321.98),
    ],
)
def test_the_duration_comes_from_the_time_or_the_rate_whichever_has_more_digits(time, rate, duration_s):
    output = HPL_OUTPUT.replace("    0.09", time).replace("6.098e+01", rate)
    for line in (output, output.replace("WR12R2C2", "WC12R2C2")):  # row-major and column-major
        assert parse_hpl_output(line, Hpl(n=2000, q=2)) == duration_s


@pytest.mark.parametrize(
    ("output", "hpl", "complaint"),
    [
        (HPL_OUTPUT.replace("0.09", "5.09"), Hpl(n=2000, q=2), "HPL:4: 5.09 s and 6.098e+01 Gflop/s are not of one"),
        (HPL_OUTPUT, Hpl(n=2000, p=2), "(2000, 128, 1, 2) instead of (2000, 128, 2, 1)"),
        ("HPL ERROR from process # 0:\n>>> Need at least 4 processes\n", Hpl(n=10), "Need at least 4 processes"),
    ],
)
def test_output_without_the_result_that_was_asked_for_is_an_error_of_one_line(output, hpl, complaint):
    with pytest.raises(EnvironmentProblem) as error:
        parse_hpl_output(output, hpl)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_matrix_larger_than_the_free_memory_is_refused_before_anything_runs():
    # 8 * (10^7)^2 bytes are 800 TB.
    with pytest.raises(InputError, match=r"needs 9600\d\d\.\d GB .* Choose N <= \d+000"):
        check_machine(Hpl(n=10_000_000))


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
