"""The environment: what is kept of the node, and the folders that variables name."""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import fake_machines
import pytest
from support_rights import obeying_permissions

from lepaute.errors import EnvironmentProblem
from lepaute.kit.builds import built_once, cache_folder
from lepaute.kit.temporary import is_plain, plain_name, temporary_folder, temporary_parent
from lepaute.measure.node_agent.facts import LARGEST_BYTES, chosen_variables, collect, without_identities
from lepaute.measure.node_agent.redact import Redactor
from lepaute.measure.node_agent.system_files import Ran, SystemFiles, run_command


def redact(variables: dict[str, str]) -> dict[str, object]:
    return chosen_variables(variables, Redactor(variables))


def test_secret_looking_names_and_passwords_in_addresses_are_redacted_and_no_member_holds_one() -> None:
    kept = redact({"SLURM_JWT": "abc", "OMPI_MCA_proxy": "http://user:hunter2@host:80/", "LEPAUTE_TOKEN": "t"})
    assert kept["values"] == {
        "SLURM_JWT": "(redacted)",
        "OMPI_MCA_proxy": "http://(redacted)@host:80/",
        "LEPAUTE_TOKEN": "(redacted)",
    }
    members = collect(SystemFiles(), environ={"API_KEY": "s3cr3t-value", "OMPI_MCA_btl": "self"})
    assert not any(b"s3cr3t-value" in content for content in members.values())
    assert json.loads(members["variables.json"])["other_names"] == ["API_KEY"]
    assert {"cpuinfo.txt", "meminfo.txt", "uname.txt", "loadavg.txt"} <= set(members)


def node(root: Path) -> SystemFiles:
    return fake_machines.write(
        root, {"proc/cpuinfo": "model name : X", "proc/cmdline": "root=/dev/sda password=hunter2"}
    )


def test_what_a_node_lacks_is_named_with_the_reason(tmp_path: Path) -> None:
    def run(argv: list[str], limit_s: float) -> Ran:
        if argv[0] == "lstopo":
            return Ran(0, b"<topology/>")
        if argv[0] == "dmesg":
            return Ran(1, b"", b"dmesg: read kernel buffer failed: Operation not permitted\n")
        if argv[0] == "dpkg-query":
            return Ran(1, b"libopenblas0\t0.3.21\nnano\t7\n", b"an error in its files\n")
        if argv[0] == "lspci":
            return Ran(None, b"", b"", f"lspci did not end within {limit_s:g} s")
        return Ran(None, b"", b"", f"{argv[0]} is not installed")

    members = collect(node(tmp_path), run)
    absent = json.loads(members["absent.json"])
    assert members["lstopo.xml"] == b"<topology/>"  # the second name was tried
    assert members["openblas.txt"] == b"libopenblas0\t0.3.21\n"  # of all packages those that matter
    assert absent["openblas.txt"] == "dpkg-query: exit status 1: an error in its files"
    assert absent["dmesg.txt"].endswith("Operation not permitted")
    assert absent["lspci.txt"] == "lspci did not end within 10 s"
    assert absent["gcc.txt"] == "gcc is not installed"
    assert absent["meminfo.txt"] == "/proc/meminfo: the kernel or the hardware does not have it"
    # Each member is there or named as absent; only what is there in part is both.
    assert set(absent) & set(members) == {"openblas.txt"}
    assert members["cmdline.txt"] == b"root=/dev/sda password=(redacted)\n"


def test_an_endless_output_is_cut_and_said_to_be(tmp_path: Path) -> None:
    members = collect(node(tmp_path), lambda argv, _: Ran(0, b"x" * (LARGEST_BYTES + 7) if argv[0] == "dmesg" else b""))
    assert len(members["dmesg.txt"]) == LARGEST_BYTES
    assert json.loads(members["absent.json"])["dmesg.txt"].startswith("cut: the last")


def test_identities_are_replaced_by_a_digest_that_stays_the_same() -> None:
    text = "\tSerial Number: PF1A2B3C\n\tUUID: 4c4c4544-0031\n\tAsset Tag: Not Specified\n\tManufacturer: Acme\n"
    shown = without_identities(text)
    assert "PF1A2B3C" not in shown
    assert "4c4c4544" not in shown
    assert "Asset Tag: Not Specified" in shown
    assert "Manufacturer: Acme" in shown
    assert shown == without_identities(shown) == without_identities(text)
    topology = '<info name="DMIProductSerial" value="PF1A2B3C"/><info name="Address" value="AA:bb:cc:dd:ee:01"/>'
    hidden = without_identities(topology)
    assert "bb:cc" not in hidden
    assert hidden.split('value="')[1].split('"')[0] == shown.split("Serial Number: ")[1].split("\n")[0]
    # Not addresses: of the PCI bus, a time, and one that is nobody's.
    innocent = "0000:00:1f.2 12:30:45 00:00:00:00:00:00 [8086:0d57]"
    assert without_identities(innocent) == innocent


def test_a_command_that_hangs_is_ended_with_what_it_started() -> None:
    ran = run_command(["sh", "-c", "echo before; sleep 100 & sleep 100"], 2.0)
    assert (ran.returncode, ran.stdout, ran.problem) == (None, b"before\n", "sh did not end within 2 s")
    assert run_command(["/no/such/program"], 1.0).problem == "/no/such/program is not installed"


#: What the dynamic linker, a shell or SimGrid cut into pieces.
ODD = "a b:c'd\"e;$f,ü"


def test_a_library_gets_a_plain_name(tmp_path: Path) -> None:
    library = tmp_path / ODD / "lib.so"
    library.parent.mkdir()
    library.write_text("content")
    for within in (None, tmp_path, library.parent):
        with plain_name(library, within) as name:
            assert is_plain(name)
            assert name.read_text() == "content"
        if within is None:
            assert not name.exists()
    plain = tmp_path / "lib.so"
    with plain_name(plain) as name:
        assert name == plain


def test_a_folder_with_a_plain_name_is_found_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / ODD
    odd.mkdir()
    monkeypatch.setenv("TMPDIR", str(odd))
    with temporary_folder("x-") as folder, temporary_folder("x-", plain=True) as other:
        assert folder.parent == odd
        assert is_plain(other)
        assert other.is_dir()
    assert not folder.exists()
    assert not other.exists()


def test_a_relative_folder_is_the_same_for_programs_in_other_folders(tmp_path, monkeypatch):
    (tmp_path / "t").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", "t")
    monkeypatch.setenv("LEPAUTE_HOME", "home")
    assert temporary_parent() == tmp_path / "t"
    assert subprocess.check_output(["sh", "-c", "echo $TMPDIR"], cwd="/", text=True).strip() == str(tmp_path / "t")
    assert cache_folder() == tmp_path / "home"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("TMPDIR", f"{{here}}/{name}") for name in ("missing", "file", "file/below", "x" * 300)),
        *(
            ("LEPAUTE_HOME", value)
            for value in ("~nobody-of-this-name/x", "/tmp/a\udcff", "/tmp/a\x1b[2J", "/tmp/a\nb")
        ),
    ],
)
def test_a_folder_that_cannot_be_used_is_told_with_its_variable(variable, value, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(variable, value.replace("{here}", str(tmp_path)))
    with pytest.raises(EnvironmentProblem, match=variable):
        temporary_folder("x-").__enter__() if variable == "TMPDIR" else cache_folder()


def test_no_folder_with_a_plain_name_is_one_line(tmp_path, monkeypatch) -> None:
    (tmp_path / ODD).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / ODD))
    monkeypatch.setattr("lepaute.kit.temporary._PLACES", ())
    with pytest.raises(EnvironmentProblem, match="set TMPDIR"), temporary_folder("x-", plain=True):
        pass


@obeying_permissions
def test_a_temporary_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="which is not writable"), temporary_folder("x-"):
        pass


@pytest.mark.parametrize("full", [{"f_bavail": 10}, {"f_favail": 0}])
def test_a_full_disk_is_told_before_anything_is_built(full, tmp_path, monkeypatch):
    disk = {"f_bavail": 10**6, "f_frsize": 4096, "f_blocks": 10**6, "f_files": 10**6, "f_favail": 10**6, **full}
    monkeypatch.setattr(os, "statvfs", lambda _folder: SimpleNamespace(**disk))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"disk is full.*TMPDIR"), temporary_folder("x-"):
        pass
    with pytest.raises(EnvironmentProblem, match=r"disk is full.*LEPAUTE_HOME"):
        built_once("x", [], "product", lambda _folder: None, tmp_path / "cache")
