"""What a run keeps on the disk: journals, tables, the workspace, and what of them survives a cut at any byte."""

import contextlib
import subprocess
import sys
import types
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_disk import small_disk
from support_limits import HANG_S

from lepaute.errors import InputError
from lepaute.kit.journal import Journal, drop_broken_end, entries
from lepaute.measure.archive import Archive
from lepaute.measure.design import full_factorial
from lepaute.measure.experiment import closing
from lepaute.measure.experiment.closing import close_interrupted
from lepaute.measure.experiment.entries import AddedRow, MeasuredRow, RunState
from lepaute.measure.experiment.helpers import relative
from lepaute.measure.experiment.job import Job
from lepaute.measure.experiment.options import options_from
from lepaute.measure.experiment.record import NotebookLog, Record, source_of, usual_log
from lepaute.measure.experiment.rounds import Until, check_recorded, rounds
from lepaute.measure.experiment.workspace import Workspace, folder_of
from lepaute.measure.nodes.results import Result
from lepaute.measure.raw_files import Table, table_blocks
from lepaute.measure.schedulers import Request
from lepaute.stats.stopping import Target

values = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20))


@given(st.lists(st.dictionaries(st.text(max_size=8), values, max_size=4), max_size=6), st.data())
@settings(max_examples=60)
def test_a_journal_that_is_cut_at_any_byte_holds_every_whole_line(tmp_path_factory, written, data):
    path = tmp_path_factory.mktemp("journal") / "x.jsonl"
    journal = Journal(path)
    for entry in written:
        journal.add(entry)
    journal.close()
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole = content[:cut].count(b"\n")
    assert list(entries(path)) == written[:whole]
    again = Journal(path)
    again.add({"after": 1})
    again.close()
    assert list(entries(path)) == [*written[:whole], {"after": 1}]


def test_a_long_line_without_end_is_cut_back_to_the_line_before(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"one\n" + b"x" * 200_000)
    drop_broken_end(path)
    assert path.read_bytes() == b"one\n"
    path.write_bytes(b"x" * 200_000)
    drop_broken_end(path)
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"a": 1}, "other columns than its first (b)"),
        ({"a": 1, "b": 2, "c": 3}, "other columns than its first (c)"),
        ({"a": "x\ny", "b": 1}, "line break"),
        ({"a": "x\0y", "b": 1}, "line break"),
    ],
)
def test_a_row_that_does_not_fit_its_table_is_refused_and_leaves_nothing(tmp_path: Path, row, told) -> None:
    table = Table(tmp_path / "t.csv", {})
    table.add({"a": 1, "b": 2})
    before = (tmp_path / "t.csv").read_bytes()
    with pytest.raises(InputError) as caught:
        table.add(row)
    assert told in str(caught.value)
    assert (tmp_path / "t.csv").read_bytes() == before
    table.close()


HOLDING = """
import sys
from pathlib import Path
from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.workspace import Workspace
workspace = Workspace.create(Path(sys.argv[1]), RunState(run_id="x"))
print("created", flush=True)
sys.stdin.read()
workspace.close()
"""


def test_a_workspace_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDING, str(tmp_path / "x.zip")]
    other = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "created\n"
    with pytest.raises(InputError, match=f"process {other.pid};"):
        Workspace.reopen(folder_of(tmp_path / "x.zip"))
    with pytest.raises(InputError, match="an interrupted run is there"):
        Workspace.create(tmp_path / "x.zip", RunState())
    other.communicate(timeout=HANG_S)
    Workspace.reopen(folder_of(tmp_path / "x.zip")).close()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with contextlib.closing(Workspace.create(tmp_path / "x.zip", RunState())) as created:
        yield created


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../b", "-rf", "", "a\nb", "a/\x1b[2J"])
def test_a_path_that_leaves_the_folder_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="does not name a place inside"):
        relative(path)


def test_rounds_go_on_until_every_level_is_known_and_are_the_same_when_resumed(tmp_path: Path) -> None:
    design = full_factorial({"level": ["calm", "wild"]}, replications=2, seed=1)
    spread = {"calm": 0.1, "wild": 8.0}
    until = Until("seen", Target(0.05, least=8, most=60))

    def measure(workspace: Workspace, stop_after: int | None) -> list[tuple[int, str]]:
        """The rows of the rounds, in order; `stop_after` rows the run is interrupted."""
        made: list[tuple[int, str]] = []
        done = workspace.done()
        for number, row in enumerate(design):
            if number not in done:
                record(workspace, number, row)
        for number, row in rounds(workspace, design, until, 7, lambda _text: None):
            if stop_after is not None and len(made) == stop_after:
                return made
            made.append((number, str(row["level"])))
            record(workspace, number, row)
        return made

    def record(workspace: Workspace, number: int, row) -> None:
        value = 100.0 + spread[row["level"]] * ((number * 37) % 11 - 5)
        workspace.table("observations").add({"design_row": number, "level": row["level"], "seen": value})
        workspace.note(MeasuredRow(number))

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = Workspace.create(tmp_path / "a" / "x.zip", RunState())
    at_once = measure(whole, None)
    reached = {entry["level"]["level"]: entry for entry in whole.entries("reached")}
    assert reached["calm"]["reached"]
    assert reached["wild"]["observations"] > reached["calm"]["observations"] >= 8
    parts = Workspace.create(tmp_path / "b" / "x.zip", RunState())
    first = measure(parts, 5)
    parts.close()
    again = Workspace.reopen(tmp_path / "b" / "x.work")
    assert first + measure(again, None) == at_once
    whole.close()
    again.close()


@pytest.mark.parametrize(("wall_s", "first_round"), [(0.001, 2 * 18), (1.0, 30)])
def test_a_budget_counts_what_rows_take_and_not_what_they_record(wall_s, first_round, workspace):
    """Of rows of a millisecond as many are planned as the first look needs, 20 a level; of rows of a second, 30."""
    design = full_factorial({"level": ["a", "b"]}, replications=2, seed=1)
    for number, row in enumerate(design):
        workspace.table("observations").add({"level": row["level"], "gflops": 5000.0 + 1000.0 * (number % 2)})
        workspace.note(MeasuredRow(number, wall_s=wall_s))
    until = Until("gflops", Target(0.02, least=20, most=40), budget_s=30.5)
    next(rounds(workspace, design, until, 7, lambda _text: None))
    assert len(workspace.noted(AddedRow)) == first_round


def test_a_round_ends_where_its_budget_does(monkeypatch, workspace):
    now_s = [100.0]
    monkeypatch.setattr("lepaute.measure.experiment.rounds.time", types.SimpleNamespace(monotonic=lambda: now_s[0]))
    design = full_factorial({"level": ["a", "b"]}, replications=2, seed=1)
    until = Until("gflops", Target(0.02, least=20, most=40), budget_s=0.05)
    for number, row in enumerate(design):
        workspace.table("observations").add({"level": row["level"], "gflops": 1.0 + number})
        workspace.note(MeasuredRow(number, wall_s=1e-4))  # so that a round of many is planned
    made = 0
    for _ in rounds(workspace, design, until, 7, lambda _text: None):
        now_s[0] += 0.1  # it takes longer than was thought
        made += 1
    assert made == 1
    assert not any(entry["reached"] for entry in workspace.entries("reached"))


def test_a_column_that_was_not_recorded_is_told_after_the_first_row(workspace):
    design = full_factorial({"level": ["a", "b"]}, seed=1)
    assert not check_recorded(workspace, design, Until("rate"))
    workspace.table("observations").add({"level": "a", "gflops": 1.0})
    assert check_recorded(workspace, design, Until("gflops"))
    with pytest.raises(InputError, match="nothing was recorded as rate"):
        check_recorded(workspace, design, Until("rate"))
    with pytest.raises(InputError, match="the design has no factor 'size'"):
        check_recorded(workspace, design, Until("gflops", per=["size"]))


def test_options_by_name_are_those_of_the_run_and_of_the_request() -> None:
    options = options_from("test", {"nodes": "node[1-2]", "seed": 3, "monitor_period_s": 0.5})
    assert (options.scheduler, options.seed, options.request) == ("ssh", 3, Request(nodes="node[1-2]"))
    assert options_from("test", {"parameters": {"replications": 3}}).parameters == {"replications": "3"}  # as --set
    with pytest.raises(InputError, match="has no setting 'node'"):
        options_from("test", {"node": "x"})


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "tiny", "64k"):
        yield tmp_path / "tiny"


def test_what_a_full_disk_refuses_leaves_nothing_and_does_not_come_later(tiny_disk: Path) -> None:
    table, journal = Table(tiny_disk / "t.csv", {"generator": "test"}), Journal(tiny_disk / "j.jsonl")
    number = 0
    with pytest.raises(OSError, match="No space"):  # noqa: PT012 - which row is the first is not known
        for number in range(20_000):
            table.add({"number": 10**6 + number, "x": 0.5})
    with pytest.raises(OSError, match="No space"):  # noqa: PT012
        for _ in range(200):
            journal.add({"text": "x" * 100})
    table.close()
    journal.close()
    assert (tiny_disk / "t.csv").read_text().splitlines()[2:] == [f"{10**6 + row},0.5" for row in range(number)]
    assert all(entry == {"text": "x" * 100} for entry in entries(tiny_disk / "j.jsonl"))


def test_room_that_a_journal_took_is_there_when_the_disk_is_full_and_reads_as_nothing(tiny_disk: Path) -> None:
    journal = Journal(tiny_disk / "j.jsonl")
    journal.add({"n": 1})
    journal.reserve(9000)
    with (tiny_disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(b"x" * 1024)
    assert list(entries(tiny_disk / "j.jsonl")) == [{"n": 1}]
    journal.add({"n": 2, "text": "y" * 8000})
    with pytest.raises(OSError, match="No space"):
        journal.reserve(9000)
    assert [entry["n"] for entry in entries(tiny_disk / "j.jsonl")] == [1, 2]
    journal.close()
    assert (tiny_disk / "j.jsonl").read_bytes().endswith(b'y"}\n')


def test_secrets_in_command_lines_and_variables_of_commands_are_not_written_down(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "x.zip", RunState())
    record = Record(workspace, say=lambda _line: None)
    variables = {"API_TOKEN": "abcdefgh1234", "THREADS": "4"}
    record.command(Result("n", ("db", "--password", "opensesame1", "-v"), None, 0, "", "", "", 0.1, variables))
    workspace.close()
    kept = "".join(path.read_text() for path in workspace.folder.rglob("*") if path.is_file())
    assert "opensesame1" not in kept
    assert "abcdefgh1234" not in kept
    (entry,) = workspace.entries("commands")
    assert entry["argv"] == ["db", "--password", "(redacted)", "-v"]
    assert entry["environment"] == {"API_TOKEN": "(redacted)", "THREADS": "4"}


def begun(folder: Path) -> Workspace:
    """A workspace in which something was measured."""
    workspace = Workspace.create(folder / "x.zip", RunState(nodes=["n"], created="2026-01-01T00:00:00+00:00"))
    workspace.table("observations").add({"a": 1, "recorded_s": 1.0})
    workspace.journal("monitoring/n").add({"time_s": 1.0, "x": 1})
    return workspace


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("commands.jsonl", b"\0\0\0\0\n"),
        ("monitoring/n.jsonl", b'{"time_s":2.0,"x":"text"}\n'),
        ("monitoring/n.jsonl", b'{"time_s":"evil","x":[1]}\n'),
        ("monitoring/n.jsonl", b'{"time_s":2.0,"x":true}\n{"time_s":2.0,"x":null}\n'),
        ("monitoring/n.jsonl", b'{"time_s":2.0,"x":%d}\n' % 2**70),
        ("monitoring/n.jsonl", b"5\n"),
        ("raw/observations.csv", b"\0\0\n"),
        ("raw/observations.csv", b"3\n"),
        ("raw/observations.csv", b"3,4.0,5\n"),
        ("raw/observations.csv", b"3,\xff\n"),
    ],
)
def test_a_damaged_line_or_strange_value_keeps_nothing_else_out_of_the_archive(tmp_path, name, data):
    workspace = begun(tmp_path)
    workspace.close()
    with (workspace.folder / name).open("ab") as file:
        file.write(data)
    archive = Archive.open(close_interrupted(workspace.folder))
    assert archive.table("observations/observations.parquet")["a"].tolist()[0] in (1, "1")
    assert archive.table("monitoring/n.parquet")["time_s"].astype(str).tolist()[0] == "1.0"
    whole = data.startswith(b'{"time') or b"\xff" in data
    assert whole or any("damaged" in warning for warning in archive.metadata["warnings"])


def test_an_archive_of_many_rows_is_that_of_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = begun(tmp_path)
    for number in range(2, 8):
        workspace.table("observations").add({"a": number, "recorded_s": None if number == 5 else float(number)})
        workspace.note(MeasuredRow(number))
    workspace.close()
    tables = []
    for rows in (1000, 2):
        monkeypatch.setattr(closing, "table_blocks", partial(table_blocks, rows=rows))
        archive = Archive.open(close_interrupted(workspace.folder, force=True))
        tables.append(archive.table("observations/observations.parquet"))
    pandas.testing.assert_frame_equal(*tables)
    assert tables[1]["a"].tolist() == [1, *range(2, 8)]


@pytest.mark.parametrize("name", ["files/n/a:b", "environment/n/a\nb", "files/a\\b", "files/../x", "files//x"])
def test_a_file_that_no_archive_can_hold_is_refused_when_it_is_kept(tmp_path: Path, name: str) -> None:
    with contextlib.closing(begun(tmp_path)) as workspace, pytest.raises(InputError, match="cannot be the name"):
        workspace.keep_file(name, b"x")


def test_the_cells_of_a_notebook_are_the_script_of_a_class_that_they_define(monkeypatch: pytest.MonkeyPatch) -> None:
    main = types.ModuleType("__main__")
    main.In = ["", "import lepaute as lp\n", "class Mine(lp.Job):\n    pass"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", main)
    mine = type("Mine", (Job,), {"__module__": "__main__"})
    name, text = source_of(mine) or ("", b"")
    assert (name, text.decode()) == ("session.py", "import lepaute as lp\n\n# %%\nclass Mine(lp.Job):\n    pass\n")
    assert source_of(Job) == (name, text)  # `with lp.Job(...)`, by hand
    monkeypatch.delattr(main, "In")
    assert source_of(Job) is None
    assert (source_of(type("Mine", (Job,), {"__module__": __name__})) or ("", b""))[0] == Path(__file__).name


def test_a_notebook_shows_one_line_of_the_log_and_every_warning(monkeypatch, capsys):
    shown: list[str] = []

    class Handle:
        def update(self, content, raw):
            assert raw
            shown[-1] = content["text/plain"]

    def display(content, raw, display_id):
        shown.append(content["text/plain"])
        return Handle()

    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    log = usual_log()
    assert isinstance(log, NotebookLog)
    for line in ("first", "second", "warning: hot", "third"):
        log(line)
    log.show("x.zip: complete")
    assert shown == ["x.zip: complete"]
    assert capsys.readouterr().err == "warning: hot\n"


def test_a_notebook_shows_the_message_of_an_error_and_the_lines_that_led_to_it() -> None:
    with pytest.raises(InputError) as caught:
        options_from("test", {"node": "x"})
    lines = caught.value._render_traceback_()
    assert lines[0].endswith('options_from("test", {"node": "x"})')
    assert [line for line in lines if "src/lepaute" in line] == []
    assert lines[-1].startswith("InputError: an experiment has no setting 'node'")
