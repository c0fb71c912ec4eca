"""Entries of the changelog: recorded, withdrawn, exchanged; and what else changed between archives."""

import datetime as dt
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support_archive import Node, experiment_archive

from lepaute.errors import InputError
from lepaute.measure.archive import Archive
from lepaute.watch.changelog import Changelog, Event, NodeSet, Outlier, read_changelog
from lepaute.watch.changelog_edits import accept, add_changelog, logged_changelog, logged_entries, record, withdraw
from lepaute.watch.proposals.other_changes import with_other_changes
from lepaute.watch.proposals.proposed_event import DAYS, MACHINE, PLATFORM, STEP, FactorChange, ProposedEvent
from lepaute.watch.store import open_store

EVENT = Event(dt.date(2020, 4, 1), NodeSet("dahu", "13/14"), "platform", "BIOS, version 2", "jane")
OUTLIER = Outlier(dt.date(2020, 12, 4), NodeSet("dahu", "26"), "1965756", "power drop", "joe")
MACHINES = (("dahu", "13", 0), ("dahu", "14", 1))


def proposal(shape: str) -> ProposedEvent:
    day = dt.date(2020, 4, 2)
    begin_s = dt.datetime(2020, 4, 1, 12, tzinfo=dt.UTC).timestamp()
    return ProposedEvent(
        PLATFORM,
        shape,
        begin_s,
        begin_s + 86_400,
        MACHINES,
        (FactorChange("mean_frequency_Hz", -1, -0.05, -0.06, -0.04, MACHINES),),
        1e-6,
        10.0,
        days=(day,) if shape == DAYS else (),
        jobs=(("dahu", "13", "77", day), ("dahu", "14", "77", day)) if shape == DAYS else (),
    )


def test_a_group_of_nodes_is_recorded_as_the_nodes_that_it_holds(tmp_path: Path) -> None:
    """What a group holds changes, and a store is read where it is not known."""
    (tmp_path / "groups.conf").write_text("[Main]\ndefault: here\n[here]\nmap: echo n[1-3]\n")
    program = (
        "import sys, datetime as dt\nfrom lepaute.watch.store import open_store\n"
        "from lepaute.watch.changelog import Event, NodeSet\nfrom lepaute.watch.changelog_edits import record\n"
        "with open_store(sys.argv[1]) as store:\n"
        "    record(store, [Event(dt.date(2020, 4, 1), NodeSet('c', '@batch,n9'), 'platform', 'BIOS', 'jane')])\n"
    )
    environment = {**os.environ, "CLUSTERSHELL_CFGDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "store")], env=environment, check=True)
    with open_store(tmp_path / "store") as store:
        (entry,) = logged_changelog(store).events
    assert entry.nodes == NodeSet("c", "n[1-3,9]")


@pytest.mark.parametrize("shape", [STEP, DAYS])
def test_a_proposal_that_several_accept_is_recorded_once(shape: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        first = accept(store, proposal(shape), "jane", "a new BIOS")
        assert accept(store, proposal(shape), "joe", "a fan") == first
        log = logged_changelog(store)
        assert {entry.author for entry in (*log.events, *log.outliers)} == {"jane"}
        withdraw(store, first, "jane", "no")
        accept(store, proposal(shape), "joe", "a fan")
        log = logged_changelog(store)
        assert {entry.author for entry in (*log.events, *log.outliers)} == {"joe"}


def test_what_is_recorded_is_in_force_until_it_is_withdrawn_and_stays_in_the_history(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        ids = record(store, [EVENT, OUTLIER])
        assert record(store, [EVENT]) == ids[:1]
        assert logged_changelog(store) == Changelog((EVENT,), (OUTLIER,))
        assert [entry.id for entry in logged_entries(store)] == list(ids)
        assert withdraw(store, [ids[0][:8], ids[1]], "joe", "was another node") == 2
        assert logged_changelog(store) == Changelog()
        assert withdraw(store, ids, "joe", "again") == 0
        history = [entry for entry in logged_entries(store, history=True) if entry.id == ids[0]]
        assert [(each.withdrawn, each.entry.author, each.entry.reason) for each in history] == [
            (False, "jane", "BIOS, version 2"),
            (True, "joe", "was another node"),
        ]
        assert record(store, [EVENT]) == ids[:1]
        assert logged_changelog(store).events == (EVENT,)


def test_entries_without_author_or_reason_and_unknown_ids_are_refused(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        with pytest.raises(InputError, match="no author"):
            record(store, [Event(EVENT.date, EVENT.nodes, "platform", "BIOS")])
        with pytest.raises(InputError, match="no reason"):
            record(store, [OUTLIER, Event(EVENT.date, EVENT.nodes, "platform", " ", "jane")])
        assert logged_entries(store, history=True) == ()
        (known,) = record(store, [EVENT])
        with pytest.raises(InputError, match="not the id of an event"):
            withdraw(store, [known, "0123"], "joe", "why not")
        with pytest.raises(InputError, match="no reason"):
            withdraw(store, [known], "joe", "")
        assert logged_changelog(store).events == (EVENT,)


def test_a_file_with_a_faulty_line_records_nothing(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text(
        "date,cluster,node,type,description\n2020-04-01,dahu,all,platform,BIOS\n2020,dahu,all,platform,x\n"
    )
    with open_store(tmp_path / "store") as store:
        with pytest.raises(InputError, match=r"events\.csv:3"):
            add_changelog(store, read_changelog(events))
        assert logged_entries(store) == ()


def test_accepting_a_step_records_one_event_with_the_reason_that_is_given(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        accept(store, proposal(STEP), "jane", "fan replaced")
        (entry,) = logged_entries(store)
    nodes = NodeSet("dahu", "13/14")
    assert entry.entry == Event(dt.date(2020, 4, 2), nodes, "platform", "fan replaced", "jane")


def test_accepting_single_days_records_an_outlier_a_job(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        accept(store, proposal(DAYS), "jane")
        (outlier,) = logged_changelog(store).outliers
    assert (outlier.job, outlier.nodes.text, outlier.date) == ("77", "13/14", dt.date(2020, 4, 2))


ONE_MACHINE = (("", "node1", 0),)
LOWER_RATE = ProposedEvent(
    MACHINE,
    STEP,
    0.0,
    86_400.0,
    ONE_MACHINE,
    (FactorChange("dgemm_rate_flops", -1, -0.03, -0.04, -0.02, ONE_MACHINE),),
    1e-5,
    3.0,
)


def archives(folder: Path) -> tuple[Archive, Archive]:
    """Before and after: on node1 another microcode and library, on node2 another kernel."""
    before = experiment_archive(folder / "before.zip")
    nodes = [
        Node("node1", microcode="0x5003604", packages={"libc6": "2.31-13", "libopenblas0": "0.3.20"}),
        Node("node2", mhz=2345.0, kernel="6.1.0-9-amd64"),
    ]
    after = experiment_archive(folder / "after.zip", nodes)
    return Archive.open(before), Archive.open(after)


def event(before: Archive, after: Archive) -> ProposedEvent:
    return replace(LOWER_RATE, archives_before=(before.id,), archives_after=(after.id,))


def differences(before: Archive, after: Archive, cluster: str, node: str) -> str:
    """What is said of an event on this node between two archives."""
    opened = {archive.id: archive for archive in (before, after)}
    on_node = replace(event(before, after), machines=((cluster, node, 0),))
    (explained,) = with_other_changes([on_node], opened.__getitem__)
    return "\n".join(explained.other_changes)


def test_microcode_and_packages_of_the_node_that_changed_are_named_and_not_those_of_others(tmp_path: Path) -> None:
    before, after = archives(tmp_path)
    text = differences(before, after, "", "node1")
    assert "0x5003604" in text
    assert "libopenblas0" in text
    assert "6.1.0-9" not in text
    assert before.id[:12] in text
    assert after.id[:12] in text
    assert "6.1.0-9" in differences(before, after, "", "node2")
    assert "0x5003604" in differences(before, after, "", "otherwise-named")


def test_the_store_knows_the_archives_of_an_event(tmp_path: Path) -> None:
    before, after = archives(tmp_path)
    with open_store(tmp_path / "store") as store:
        store.ingest([before, after])
        (explained,) = with_other_changes([event(before, after)], store)
        assert "0x5003604" in "\n".join(explained.other_changes)
        (same,) = with_other_changes([event(before, before)], store)
        assert "no other difference" in same.other_changes[0]
        (untouched,) = with_other_changes([LOWER_RATE], store)
        assert untouched.other_changes == ()


def test_an_archive_that_is_gone_or_another_one_by_now_is_named(tmp_path: Path) -> None:
    before, after = archives(tmp_path)
    with open_store(tmp_path / "store") as store:
        store.ingest([before, after])
        after.path.unlink()
        (gone,) = with_other_changes([event(before, after)], store)
        assert gone.other_changes[0].startswith(f"archive {after.id[:12]} is not compared")
        before.path.replace(after.path)
        (other,) = with_other_changes([event(after, after)], store)
        assert "another archive now" in other.other_changes[0]
        (unknown,) = with_other_changes([replace(event(after, after), archives_before=("0" * 64,))], store)
        assert "not in the store" in unknown.other_changes[0]
