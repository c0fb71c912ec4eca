"""Commands that state one fact state the same figure: what writes a thing, what shows it, and what checks it."""

import re
from pathlib import Path

import pytest

from lepaute.cli.main import main

EXPERIMENT = """\
import lepaute as lp


class Nothing(lp.Job):
    monitor_period_s = 0.0
    reference_period_s = 0.0

    def design(self):
        return lp.design.full_factorial({"x": [1, 2, 3]}, seed=self.seed)

    def run(self):
        for row in self.rows():
            self.record(y=1.0)
"""


def first_line(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    capsys.readouterr()
    assert main(list(argv)) == 0
    return capsys.readouterr().out.splitlines()[0]


def test_a_design_that_is_written_and_one_that_is_shown_have_one_sentence(tmp_path, monkeypatch, capsys, json_of):
    monkeypatch.chdir(tmp_path)
    factors = ("-f", "a=1,2,3", "-f", "b=x,y", "--replications", "4")
    for more in ((), ("--blocks", "5")):
        written = first_line(capsys, "design", "factorial", *factors, *more, "-o", "d.csv", "--force")
        assert written == first_line(capsys, "design", "show", "d.csv")
        rows, treatments, times = map(int, re.findall(r"[0-9]+", written)[:3])
        told = json_of("design", "show", "d.csv", "--json")
        assert (rows, treatments, [times, times]) == (told["rows"], told["treatments"], told["replications"])


def test_a_platform_that_is_written_is_the_one_that_is_shown_and_checked(tmp_path, monkeypatch, capsys, output_of):
    monkeypatch.chdir(tmp_path)
    sheet = "--nodes 4 --cores 2x8 --dgemm 30G --link 100Gb --latency 1.5us -o p.yaml".split()
    made = first_line(capsys, "platform", "new", *sheet)
    checked = first_line(capsys, "platform", "check", "p.yaml")
    drawn = first_line(capsys, "platform", "synthesize", "--nodes", "3", "--like", "dahu", "-o", "s.yaml")
    for file, said in (("p.yaml", made), ("p.yaml", checked), ("s.yaml", drawn)):
        assert said.endswith(f"platform {first_line(capsys, 'platform', 'show', file)}"), said
    # the latency that was given is the time of a short message
    assert "between 1.50 µs for a short message, " in output_of("platform", "show", "p.yaml")


@pytest.mark.slow
@pytest.mark.nodes
def test_a_run_its_archive_and_its_verification_count_the_same(tmp_path, monkeypatch, capsys, json_of):
    monkeypatch.chdir(tmp_path)
    Path("nothing.py").write_text(EXPERIMENT)
    ended = first_line(capsys, "run", "nothing.py", "-o", "x.zip", "-q")
    assert ended == "x.zip: complete, 3 of 3 rows measured"
    shown = first_line(capsys, "archive", "show", "x.zip")
    assert shown.startswith("COMPLETE: experiment Nothing, 3 of 3 rows measured on 1 node, ")
    told = json_of("archive", "show", "x.zip", "--json")
    verified = first_line(capsys, "archive", "verify", "x.zip")
    assert verified == f"x.zip: intact, {len(told['members'])} members, id {told['id'][:12]}"
    extracted = first_line(capsys, "archive", "extract", "x.zip", "-o", "files")
    assert extracted.startswith(f"files: {len(told['members']) + 1} files of x.zip, ")  # and the manifest
