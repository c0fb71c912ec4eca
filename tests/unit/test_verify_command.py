"""`lepaute verify command`, a whole campaign of it; and the real HPL: its source, and what it prints."""

import csv
import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.measure import hpl_source
from lepaute.measure.verify.real_run import Command, check_machine, parse_hpl_output
from lepaute.simulate import Hpl, Stencil
from lepaute.simulate.apps.own.loading import loaded

APPLICATION = """
import lepaute as lp


class Some(lp.Application):
    grid: lp.Grid
    n: int = 10
    work = lp.Cost(1e-3, error=0.01)

    def run(self, me):
        yield me.compute(self.work, self.n)
"""
PATTERN = r"time: (\S+) s"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sheet") / "here.yaml"
    sheet = ["--nodes", "1", "--cores", "1x2", "--dgemm", "20G", "--link", "100Gb", "--memory", "8G"]
    assert main(["platform", "new", *sheet, "-o", str(path)]) == 0
    return path.read_text()


@pytest.fixture
def folder(platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an application whose runs nothing disturbs on a machine of two cores."""
    (tmp_path / "some.py").write_text(APPLICATION)
    (tmp_path / "here.yaml").write_text(platform)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lepaute.measure.verify.campaign.disturbances", lambda *_loads: ())
    return tmp_path


def verify(*words: str, grid: str = "1x1", pattern: str = PATTERN, options: tuple[str, ...] = ()) -> int:
    given = ["--grid", grid, "-p", "here.yaml", "--runs", "3", "--time-pattern", pattern, *options]
    return main(["verify", "command", "some.py:Some", *given, "--", *words])


def test_words_in_braces_are_parameters_of_the_case(folder: Path) -> None:
    some = loaded("some.py:Some")(grid="2x3", n=7)
    words = ("mpirun", "-np", "{ranks}", "./some", "--size={n}/{grid}", "{grid[1]}", "${n}", "{}", "{1}")
    filled = ("mpirun", "-np", "6", "./some", "--size=7/2x3", "3", "${n}", "{}", "{1}")
    assert Command(words, PATTERN).of(some) == filled
    stencil = Stencil(cells=(8, 8, 8), grid=(2, 1, 1), cell_time_s=1e-9)
    assert Command(("{cells}", "{grid[0]}"), PATTERN).of(stencil) == ("8x8x8", "2")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'time 1.5 s'", "the program printed nothing that matches"),
        ("echo time: 1.5 s >&2", "on standard output"),
        ("echo time: 1,5 s", "the program printed '1,5' for"),
        ("echo time: nan s", "which is no time"),
        ("echo time: 0.00 s", "a time of 0 s"),
        ("echo time: 1 s; echo no such input >&2; exit 3", "the command failed (exit status 3): no such input"),
        ("kill -9 $$", "the command failed (signal 9)"),
        ("exec sleep 1000", "the command did not finish within 0.2 s"),
    ],
)
def test_a_command_without_a_time_is_one_line(script: str, problem: str, folder: Path) -> None:
    command = Command(("sh", "-c", script), PATTERN, timeout_s=0.2 if "sleep" in script else None)
    with pytest.raises(EnvironmentProblem) as failure:
        command.run(loaded("some.py:Some")(grid="1"), 60.0)
    assert problem in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("words", "more", "problem"),
    [
        ((), {}, "no command is given; write it after two dashes"),
        (("true",), {"pattern": "time"}, "has 0 groups"),
        (("./missing",), {}, "./missing: no such program"),
        (("true", "{m}"), {}, "the command has {m}, which Some has not"),
        (("true",), {"grid": "1x1,2x1"}, "the command is the same for several of 2 cases"),
        (("true",), {"grid": "640x100"}, "needs 64000 cores for the real run"),
        (("true",), {"options": ("--repeats", "0")}, "--repeats is 0"),
        (("true",), {"options": ("--timeout", "0")}, "--timeout is '0'; it must be at least 1"),
        (("true",), {"options": ("--resume",)}, "no interrupted verification to resume"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_predicted(words, more, problem, folder, capsys):
    capsys.readouterr()
    assert verify(*words, **more) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lepaute: ")]
    assert len(told) == 1
    assert problem in told[0]
    assert not (folder / "lepaute-verify-command").exists()


def test_platform_pattern_and_names_of_options_are_asked_for(folder, refusal_of):
    base = ["verify", "command", "some.py:Some", "--grid", "1"]
    for more, problem in {
        ("-p", "here.yaml", "--", "true"): "say where: --time-pattern 'time: (\\S+) s'",
        ("--time-pattern", PATTERN, "--", "true"): "with -p PLATFORM",
    }.items():
        assert problem in refusal_of(*base, *more)
    (folder / "some.py").write_text(APPLICATION.replace("n: int", "repeats: int").replace("self.n", "self.repeats"))
    assert "Some.repeats: lepaute verify command has an option of that name" in refusal_of(*base, "--help")
    assert main(["verify", "command", "hpl", "--help"]) == 2


#: Appends to a file that it has run; its time is 0.01 s a rank.
SCRIPT = 'echo {ranks} >> ran; echo 0.01 {ranks} | awk \'{ print "time: " $1 * $2 " s" }\''


def test_a_campaign_is_sealed_run_compared_kept_and_resumed(folder, capsys, monkeypatch):
    monkeypatch.setattr("lepaute.measure.verify.plot.plot", lambda _table, _runs, path, *_texts: [
        path.with_suffix(end).write_bytes(b"") for end in (".png", ".svg")
    ])  # fmt: skip
    words, options = ("sh", "-c", SCRIPT), ("--repeats", "2", "-o", "out")
    assert verify(*words, grid="1x1,2x1", options=options) == 0
    out = folder / "out"
    assert sorted((folder / "ran").read_text().split()) == ["1", "1", "2", "2"]
    text = capsys.readouterr().out
    assert "2 of 4 runs and 1 of 2 means inside their 95 % prediction intervals; mean absolute error 25" in text
    assert text.splitlines()[-1].startswith("Picture: out/verification.png; predictions sealed as ")
    rows = {row["varied"]: row for row in csv.DictReader((out / "results.csv").open())}
    assert {name: float(row["measured_time_s"]) for name, row in rows.items()} == {"grid 1x1": 0.01, "grid 2x1": 0.02}
    assert {row["label"] for row in csv.DictReader((out / "runs.csv").open())} == {"n 10, 1 x 1", "n 10, 2 x 1"}
    assert not (out / "HPL.out").exists()
    for name in ("predictions.sha256", "results.sha256"):
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", name], cwd=out, check=True)
    sealed = json.loads((out / "predictions.json").read_text())["program"]
    assert (sealed["command"], sealed["time_pattern"], sorted(sealed["sha256"])) == ([*words], PATTERN, ["sh"])

    assert verify(*words, grid="1x1,2x1", options=(*options, "--resume", "--json", "--tolerance", "10%")) == 1
    told = json.loads(capsys.readouterr().out)["verifications"]
    assert [one["parameters"]["grid"] for one in told] == [[1, 1], [2, 1]]
    assert [[run["time_s"] for run in one["measured"]] for one in told] == [[0.01, 0.01], [0.02, 0.02]]
    assert len((folder / "ran").read_text().split()) == 4
    assert verify("sh", "-c", SCRIPT + " ", grid="1x1,2x1", options=(*options, "--resume")) == 2
    assert "holds another campaign: its program.command[2] is" in capsys.readouterr().err


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
