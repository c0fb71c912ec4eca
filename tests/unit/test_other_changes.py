"""A proposed event says what else changed between the archives on its two sides, and names what it cannot compare."""

from dataclasses import replace
from pathlib import Path

from support_archive import Node, experiment_archive

from lepaute.measure.archive import Archive
from lepaute.watch.proposals.other_changes import with_other_changes
from lepaute.watch.proposals.proposed_event import MACHINE, STEP, FactorChange, ProposedEvent
from lepaute.watch.store import open_store

MACHINES = (("", "node1", 0),)
EVENT = ProposedEvent(
    MACHINE,
    STEP,
    0.0,
    86_400.0,
    MACHINES,
    (FactorChange("dgemm_rate_flops", -1, -0.03, -0.04, -0.02, MACHINES),),
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
    return replace(EVENT, archives_before=(before.id,), archives_after=(after.id,))


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


def test_nodes_are_found_by_the_name_of_their_cluster_too(tmp_path: Path) -> None:
    before = Archive.open(experiment_archive(tmp_path / "a.zip", [Node("dahu-1"), Node("dahu-2")]))
    after = Archive.open(
        experiment_archive(tmp_path / "b.zip", [Node("dahu-1", bios="2.9"), Node("dahu-2", bios="3.1")])
    )
    text = differences(before, after, "dahu", "2")
    assert "3.1" in text
    assert "2.9" not in text


def test_the_store_knows_the_archives_of_an_event(tmp_path: Path) -> None:
    before, after = archives(tmp_path)
    with open_store(tmp_path / "store") as store:
        store.ingest([before, after])
        (explained,) = with_other_changes([event(before, after)], store)
        assert "0x5003604" in "\n".join(explained.other_changes)
        (same,) = with_other_changes([event(before, before)], store)
        assert "no other difference" in same.other_changes[0]
        (untouched,) = with_other_changes([EVENT], store)
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


def test_many_differences_are_cut(tmp_path: Path) -> None:
    before = Archive.open(experiment_archive(tmp_path / "a.zip"))
    variables = {f"VARIABLE_{i}": "1" for i in range(40)}
    after = Archive.open(experiment_archive(tmp_path / "b.zip", [Node("node1", variables=variables)]))
    lines = differences(before, after, "", "node1").splitlines()
    assert len(lines) == 14  # a head, twelve lines, and how many more
    assert "lines more" in lines[-1]
