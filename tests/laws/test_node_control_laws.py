"""What holds of machine control whatever is wanted and whenever it is cut off."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fake_machines as machines
from hypothesis import given, settings
from hypothesis import strategies as st

from lepaute.measure.node_agent.control import Controls, problems, undo_leftover
from lepaute.measure.node_agent.system_files import Ran

wishes = st.fixed_dictionaries(
    {},
    optional={
        "hyper_threading": st.booleans(),
        "turbo": st.booleans(),
        "c_states": st.booleans(),
        "governor": st.sampled_from(["performance", "powersave", "ondemand"]),
    },
)
nodes = st.sampled_from([machines.intel, machines.acpi, machines.amd, machines.bare])


class Killed(BaseException):
    """Stands for a kill at a write: nothing of what would follow happens."""


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def run(argv: list[str], limit_s: float) -> Ran:
    return Ran(0, b"")


@settings(max_examples=30)
@given(nodes, st.lists(wishes, min_size=1, max_size=3))
def test_after_undo_every_file_is_as_before(node: Any, wanted: list[dict[str, Any]]) -> None:
    with folder() as path:
        files = node(path / "root")
        before = machines.tree(files.root)
        control = Controls(files, path / "journal", run, watchdog=False)
        for one in wanted:
            records = control.apply(one)
            assert {record["control"] for record in records} >= {name for name, value in one.items() if value != {}}
            assert all(record["message"] for record in records if record["status"] == "warning")
        control.undo()
        assert machines.tree(files.root) == before


@settings(max_examples=40)
@given(nodes, wishes, st.integers(0, 20), st.booleans())
def test_cut_off_at_any_write_the_next_experiment_finds_its_way_back(node, wanted, writes, written):
    with folder() as path:
        files = node(path / "root")
        before = machines.tree(files.root)
        kind = type(files)

        class Dies(kind):  # type: ignore[misc, valid-type]
            left = writes

            def write(self, name: str, value: str) -> None:
                if self.left == 0 and not written:
                    raise Killed
                super().write(name, value)
                if self.left == 0:
                    raise Killed
                self.left -= 1

        control = Controls(Dies(files.root), path / "journal", run, watchdog=False)
        with suppress(Killed):
            control.apply(wanted)
        control._lock.release()
        undo_leftover(path / "journal", files)
        assert machines.tree(files.root) == before


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_names = st.sampled_from("hyper_threading turbo c_states governor warm_up x".split())
_keys = st.sampled_from("max duration_s".split())


@settings(max_examples=40)
@given(st.dictionaries(_names, _json | st.dictionaries(_keys, _json, max_size=3), max_size=4))
def test_nonsense_is_answered_by_records_and_never_by_an_exception(wanted: dict[str, Any]) -> None:
    wrong = problems(wanted)
    assert all(message for message in wrong.values())
    if "warm_up" in wanted and "warm_up" not in wrong:
        wanted = {**wanted, "warm_up": {"duration_s": 0.1}}
    with folder() as path:
        files = machines.intel(path / "root")
        before = machines.tree(files.root)
        control = Controls(
            files, path / "journal", lambda argv, _: Ran(None, b"", b"", f"no {argv[0]}"), watchdog=False
        )
        records = control.apply(wanted)
        assert {record["control"] for record in records if record["status"] == "warning"} >= set(wrong)
        control.undo()
        assert machines.tree(files.root) == before
