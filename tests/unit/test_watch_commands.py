"""`lepaute watch ...` on the fleet of examples/watch: what an administrator reads, the JSON, the exit status."""

import json
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from support.fleets import until_today
from support_planted import Fault, planted

from lepaute.cli.main import main
from lepaute.watch.store import open_store
from lepaute.watch.values import DAY_S

EXAMPLE = Path(__file__).parents[2] / "examples" / "watch"
FLEET, MAPPING = EXAMPLE / "fleet.csv", EXAMPLE / "mapping.yaml"


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("fleet") / "store"
    assert main(["watch", "ingest", str(FLEET), "--mapping", str(MAPPING), "--store", str(store)]) == 0
    return store


@pytest.fixture(scope="module")
def tested(ingested: Path) -> Path:
    """A copy of it after a first test."""
    store = ingested.parent / "tested"
    shutil.copytree(ingested, store)
    assert main(["watch", "test", "--store", str(store), "--json"]) == 1
    return store


@pytest.fixture
def copied(ingested: Path, tmp_path: Path) -> Path:
    """A copy that nobody has tested yet."""
    store = tmp_path / "store"
    shutil.copytree(ingested, store)
    return store


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """Exit status and standard output of `lepaute watch ...`."""
    capsys.readouterr()
    return main(["watch", *map(str, words)]), capsys.readouterr().out


def found(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    return json.loads(answer(capsys, *words, "--json")[1])


def refusal(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line on standard error of a command line that is refused."""
    capsys.readouterr()
    assert main(["watch", *map(str, words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_file_is_ingested_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("ingest", FLEET, "--mapping", MAPPING, "--store", tmp_path / "store")
    assert found(capsys, *words) == {"added": [], "known": [], "values": 4110, "omitted": [], "read_as": []}
    status, text = answer(capsys, *words)
    assert status == 0
    assert text == "nothing new from 1 file\n  left out  4110 values known before\n"


def test_a_table_of_dates_nodes_and_rates_is_tested_in_one_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("LEPAUTE_STORE", raising=False)
    status, text = answer(capsys, "test", FLEET)
    assert status == 1
    assert text.startswith("1 open regression: node7 cpu 0, 1: ")
    assert "node: node; date: start; cpu: cpu; job: job; rate_flops: gflops in gflops;" in text
    assert [*tmp_path.iterdir()] == []  # where no store is named, none is left
    found(capsys, "test", FLEET, "--store", tmp_path / "store")
    assert found(capsys, "ingest", FLEET, "--store", tmp_path / "store")["values"] == 0  # they are in it


def test_a_file_that_cannot_be_read_makes_no_store_and_changes_none(ingested, tmp_path, capsys):
    (tmp_path / "wrong.csv").write_text("start,node\n2026-01-01,node1\n")
    words = ("ingest", FLEET, tmp_path / "wrong.csv", "--mapping", MAPPING, "--store")
    assert "wrong.csv" in refusal(capsys, *words, tmp_path / "store")
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.csv"]
    before = (ingested / "store.json").read_bytes()
    assert "wrong.csv" in refusal(capsys, *words, ingested)
    assert (ingested / "store.json").read_bytes() == before


READING = [
    ["test"], ["replay"], ["events", "list"], ["cost", "7", "-p", "dahu", "--n", "100"], ["health", "demo-7"],
    ["alert", "--prometheus", "state.prom"], ["site", "-o", "pages"], ["events", "propose"],
]  # fmt: skip


@pytest.mark.parametrize("command", READING)
def test_a_store_that_is_not_there_is_no_store_in_which_all_is_well(command, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("LEPAUTE_STORE", raising=False)
    assert "no store in" in refusal(capsys, *command, "--store", tmp_path / "slip")
    assert "LEPAUTE_STORE" in refusal(capsys, *command)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command", [["health", "demo-7"], ["alert", "--prometheus", "state.prom"], ["site", "-o", "p"]]
)
def test_a_store_without_values_says_nothing_of_health(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with open_store(tmp_path / "store"):
        pass
    assert "the store has no factor values" in refusal(capsys, *command, "--store", "store")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.slow
def test_all_commands_find_a_node_by_its_names_and_none_by_another(tested, capsys, monkeypatch):
    at = ("--store", tested)
    for name in ("node7", "demo-node7"):
        (node,) = found(capsys, "health", name, *at)["nodes"]
        assert (node["node"], node["verdict"], node["step"]) == ("node7", "changed", "request")
        status, text = answer(capsys, "health", name, *at)
        assert (status, text.partition(" (")[0]) == (1, f"{name}: changed: a confirmation run is needed")
    assert found(capsys, "test", "--node", "demo-node7", *at)["nodes"] == 1
    old = "node6: unknown (no node has had a value since 2026-02-28, for "
    assert old in answer(capsys, "health", "node[5-6],node99", *at)[1]
    monkeypatch.setattr("lepaute.cli.watch_nodes.time", SimpleNamespace(time=lambda: 1772366400.0))  # 1 March 2026
    status, text = answer(capsys, "health", "node[5-6],node99", *at)
    first, changed, *unknown = text.splitlines()
    assert (status, first) == (3, "0 of 3 nodes changed, 1 not confirmed, 1 failed, 1 unknown")
    assert changed.startswith("node6: not confirmed (demo node[1-12], since 2026-01-31: mean_frequency")
    assert unknown == [
        "node5: failed (no value since 2026-02-25; others reported on 3 days since; its last 3 jobs failed)",
        "node99: unknown (no results; the store has demo node[1-12])",
    ]
    monkeypatch.setenv("SLURMD_NODENAME", "node98")
    assert main(["watch", "health", *at]) == 2
    assert capsys.readouterr().err == (
        "node98 is this machine, and no node of the store; to ask for one: "
        f"lepaute watch health 'node[1-12]' --store {tested}\n"
    )
    assert answer(capsys, "health", "node[7,99]", *at)[0] == 1
    cost = ("cost", "node99", "-p", "dahu", "--n", "100")
    for command in (("test", "--node", "node[7,99]"), ("replay", "--node", "node99"), cost):
        assert "the store has no node node99; it has demo node[1-12]" in refusal(capsys, *command, *at)
    assert "the store has no cluster 'dmeo'; it has demo" in refusal(capsys, "health", "7", "--cluster", "dmeo", *at)


@pytest.mark.slow
def test_a_planted_fault_is_found_with_its_date_size_and_machines(copied, capsys):
    status, text = answer(capsys, "test", "--store", copied)
    assert status == 1
    first, alarm, *facts = text.splitlines()
    assert first.startswith("1 open regression: demo node7 cpu 0, 1: dgemm_rate_flops -")
    assert first.endswith(" since 2026-02-10; 4 of 24 CPUs cannot be judged"), "silent machines are not well"
    assert alarm.startswith("  also    node7: mean_frequency_Hz -")
    assert "alarm of 2026-02-1" in alarm
    assert [fact.split()[0] for fact in facts[:4]] == ["single", "failed", "silent", "from"]
    assert " of the latest days: demo node1 cpu 0: mean_temperature_degC lower;" in facts[0]
    assert "node3 cpu 0, 1: no value since 2026-02-17; others reported on 11 days since" in text
    assert "its last 3 jobs failed" in text
    assert "12 nodes, 24 CPUs, 3 factors, 2026-01-02 to 2026-02-28; at most 5 % of alarms" in facts[3]
    status, full = answer(capsys, "test", "--store", copied, "--details")
    assert (status, full.splitlines()[0]) == (1, first)
    assert "  demo node7 cpu 0, 1, since 2026-02-10: dgemm_rate_flops -" in full
    assert "  demo: a change of one machine of 2 % or more would be named within 10 days of jobs, " in full


@pytest.mark.slow
def test_nodes_that_are_well_end_with_status_zero_and_what_is_not_confirmed_has_its_own(tested, capsys) -> None:
    status, text = answer(capsys, "test", "--store", tested, "--node", "node[1-2,4]")
    assert status == 3
    assert "3 nodes, 6 CPUs" in text
    assert text.startswith("Not confirmed: demo node[1-12], since 2026-01-31: mean_freq")
    status, text = answer(capsys, "test", "--store", tested, "--node", "node[1-2,4]", "--until", "2026-01-30")
    assert (status, text.splitlines()[0]) == (0, "No open regression in 6 CPUs since 2026-01-02")
    assert answer(capsys, "test", "--store", tested, "--until", "2026-02-08")[0] == 0, "before the fault"


@pytest.mark.slow
def test_each_test_goes_into_a_csv_file(tested: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--node", "node7", "--factor", "dgemm_rate_flops", "--factor", "dgemm_rate_flops & mean_temperature_degC")
    answer(capsys, "test", "--store", tested, *words, "--window", "1", "--csv", tmp_path / "tests.csv")
    rows = pd.read_csv(tmp_path / "tests.csv")
    assert set(rows["p"]) == {1, 2}
    assert len(rows) == 2 * 2 * 58


@pytest.mark.slow
def test_a_replay_gives_the_alarms_on_the_days_after_the_fault_and_records_nothing(tested, tmp_path, capsys):
    before = (tested / "store.json").read_bytes()
    status, text = answer(capsys, "replay", "--store", tested, "--details", "--csv", tmp_path / "replay.csv")
    assert status == 0
    assert (tested / "store.json").read_bytes() == before
    assert (tmp_path / "replay.csv").read_text().startswith("cluster,node,cpu,")
    assert text.startswith("Replayed 55 days: 1 alarm, the first on 2026-02-1")
    alarms = [line for line in text.splitlines() if "alarm: demo node7 cpu 0, 1, since 2026-02-10" in line]
    assert "2026-02-10" <= alarms[0][:10] <= "2026-02-12"
    assert any(": dgemm_rate_flops -" in line for line in alarms)
    assert "tests on 55 days, 2026-01-05 to 2026-02-28" in text.splitlines()[-1]
    status, short = answer(capsys, "replay", "--store", tested)
    assert short.splitlines()[0] == text.splitlines()[0]
    assert len(short.splitlines()) <= 6
    days = found(capsys, "replay", "--store", tested, "--since", "2026-02-09", "--until", "2026-02-13")["days"]
    assert [day["date"] for day in days] == ["2026-02-09", *(f"2026-02-{day}" for day in (10, 11, 12, 13))]
    given = [day["date"] for day in days for alarm in day["alarms"] if ["demo", "node7", 0] in alarm["machines"]]
    assert given == [line[:10] for line in alarms]


@pytest.mark.slow
def test_the_cost_is_of_the_state_since_the_standing_regression(tested, tmp_path, capsys):
    small = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"
    words = ("cost", "node7", "--store", tested, "-p", small, "--set", "nodes.count=8", "--n", "1500", "--grid", "2x4")
    told = found(capsys, *words, "--runs", "4")
    assert told["state"]["jobs_now"] == 19, "from 2026-02-10 to 2026-02-28"
    assert told["platform_node"] == 7
    ratio = told["as_now_against_as_calibrated"]["ratio"]
    assert 1.0 < ratio["mean"] < 1.12
    assert told["without_node"]["nodes"] == 3
    assert found(capsys, *words, "--runs", "2", "--latest", "3")["state"]["jobs_now"] == 3
    status, text = answer(capsys, *words, "--runs", "2", "--since", "2026-02-12")
    assert status == 0
    assert "dgemm_rate_flops of 17 jobs since 2026-02-12" in text
    assert text.startswith("Keep node7 unless another takes its place: HPL takes ")
    assert "; against as calibrated: " in text.splitlines()[0]


def test_a_node_without_a_number_needs_one_in_the_platform(ingested, tmp_path, capsys):
    fleet = FLEET.read_text().replace("node7", "login")
    (tmp_path / "fleet.csv").write_text(fleet)
    main(
        ["watch", "ingest", str(tmp_path / "fleet.csv"), "--mapping", str(MAPPING), "--store", str(tmp_path / "store")]
    )
    words = ("cost", "login", "--store", tmp_path / "store", "-p", "dahu", "--n", "100", "--grid", "1x1")
    assert "give --platform-node N" in refusal(capsys, *words)
    assert "the store has no node node99" in refusal(capsys, "cost", "node99", *words[2:])


@pytest.mark.slow
def test_an_accepted_proposal_can_be_taken_back_and_explains_what_it_found(copied, capsys):
    store = copied
    first = found(capsys, "events", "propose", "--store", store)["proposals"][0]
    assert (first["kind"], first["date"], len(first["nodes"])) == ("platform", "2026-01-31", 12)
    _, text = answer(capsys, "events", "accept", first["id"], "--author", "jane", "--store", store)
    said, command = text.splitlines()[-1].split("lepaute watch ")
    assert said == "to take it back: "
    assert answer(capsys, *shlex.split(command)) == (0, f"1 entry withdrawn: {shlex.split(command)[2]}\n")
    assert found(capsys, "events", "list", "--store", store)["entries"] == []
    words = ("events", "accept", first["id"][:6], "--author", "jane", "--reason", "BIOS 2.8")
    (entry,) = found(capsys, *words, "--store", store)["ids"]
    (listed,) = found(capsys, "events", "list", "--store", store)["entries"]
    assert (listed["id"], listed["date"], listed["author"]) == (entry, "2026-01-31", "jane")
    assert listed["reason"] == "BIOS 2.8"
    assert first["id"] not in answer(capsys, "events", "propose", "--store", store)[1]
    (regression,) = found(capsys, "test", "--store", store)["regressions"]
    rate = next(each for each in regression["changes"] if each["factor"] == "dgemm_rate_flops")
    assert rate["size"] == pytest.approx(-0.097, abs=0.008), "the fault alone, now that the BIOS is known"


@pytest.mark.slow
def test_an_event_that_explains_a_regression_ends_it(tested, tmp_path, capsys):
    store = tmp_path / "store"
    shutil.copytree(tested, store)
    words = ("--date", "2026-02-28", "--cluster", "demo", "--node", "node7", "--reason", "new fan", "--author", "joe")
    (event,) = found(capsys, "events", "add", *words, "--store", store)["ids"]
    status, text = answer(capsys, "test", "--store", store)
    assert status == 3
    assert text.startswith("Not confirmed: demo node[1-12], since 2026-01-31: ")
    assert "; 6 of 24 CPUs cannot be judged\n" in text
    assert "demo node7 cpu 0, 1: 3 more jobs" in answer(capsys, "test", "--store", store, "--details")[1]
    withdrawn = answer(capsys, "events", "withdraw", event[:8], "--reason", "not yet", "--store", store)[1]
    assert withdrawn == f"1 entry withdrawn: {event[:8]}\n"
    assert answer(capsys, "test", "--store", store)[0] == 1


def test_the_changelog_goes_out_and_in_as_csv(ingested, copied, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(ingested, other)
    add = ("events", "add", "--date", "2026-02-28", "--node", "node[1-2]", "--author", "joe", "--store", copied)
    answer(capsys, *add, "--reason", "new fans, both")
    answer(capsys, *add, "--reason", "power drop", "--outlier", "4711")
    files = ("--events", tmp_path / "events.csv", "--outliers", tmp_path / "outliers.csv")
    assert answer(capsys, "events", "export", *files, "--store", copied)[0] == 0
    assert answer(capsys, "events", "import", *files[:2], "--store", other) == (0, "1 entry imported\n")
    words = ("events", "import", *files, "--store", other)
    assert answer(capsys, *words) == (0, "1 entry imported; 1 entry in force already\n")
    assert answer(capsys, *words) == (0, "0 entries imported; 2 entries in force already\n")
    one, two = (answer(capsys, "events", "list", "--store", store)[1] for store in (copied, other))
    assert one == two
    assert one.startswith("2 entries, 2026-02-28 to 2026-02-28\n")
    assert "2026-02-28  node[1-2]  platform: new fans, both (joe)" in one
    assert "outlier, job 4711: power drop (joe)" in one


@pytest.mark.parametrize(
    ("cluster", "nodes", "warned"),
    [
        ("all", "node99", "no node of the store is node99; it has demo node[1-12]"),
        ("other", "all", "no node of the store is all of cluster other; it has demo node[1-12]"),
        ("demo", "7", "no node of the store is 7 of cluster demo; it has demo node[1-12]"),
        ("demo", "node[12-13]", ""),
        ("all", "all", ""),
    ],
)
def test_an_event_of_no_node_is_recorded_with_a_warning(cluster, nodes, warned, copied, capsys):
    words = ["--date", "2026-02-28", "--cluster", cluster, "--node", nodes, "--reason", "fan", "--author", "joe"]
    assert main(["watch", "events", "add", *words, "--store", str(copied)]) == 0
    assert capsys.readouterr().err == (f"warning: {warned}\n" if warned else "")
    assert len(found(capsys, "events", "list", "--store", copied)["entries"]) == 1


def test_the_history_says_who_withdrew_what_and_why(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ("--store", copied)
    words = ("--date", "2026-02-28", "--node", "all", "--reason", "new fans", "--author", "joe", *store)
    (entry,) = found(capsys, "events", "add", *words)["ids"]
    answer(capsys, "events", "withdraw", entry, "--reason", "not done", "--author", "jane", *store)
    assert answer(capsys, "events", "list", *store) == (0, "no event and no outlier is recorded\n")
    count, added, withdrawn = answer(capsys, "events", "list", "--history", *store)[1].splitlines()
    assert count.startswith("1 entry, 1 withdrawal, ")
    assert added.endswith("platform: new fans (joe)")
    assert withdrawn.endswith("platform: withdrawn: not done (jane)")


@pytest.mark.slow
def test_the_effect_of_a_planned_change_is_that_of_all_and_of_each(ingested, capsys):
    words = ("events", "effect", "2026-01-31", "--store", ingested, "--factor", "dgemm_rate_flops")
    status, text = answer(capsys, *words, "--node", "node[1-2,4,6,8-12]")
    assert status == 0
    first, title, together, *machines = text.splitlines()
    assert " 18 CPUs changed on 2026-01-31: dgemm_rate_flops on average -1." in first
    assert title.startswith("demo dgemm_rate_flops: ")
    assert title.endswith("of 18 CPUs changed")
    assert together.startswith("  on average -1.")
    assert len(machines) <= 9, "the largest eight and how many more"
    changes = found(capsys, *words)["changes"]
    assert {"low", "high", "p_adjusted"} <= changes[0].keys()
    assert len(changes) == 25


@pytest.mark.slow
def test_a_silent_answer_says_the_least_change_that_it_would_have_seen_and_strict_tells_strong_evidence(
    tmp_path, capsys
) -> None:
    with open_store(tmp_path / "store") as store:
        store.add_values(planted(2, 31, (Fault((2,), -0.1, 30),), 5))
    status, text = answer(capsys, "test", "--store", tmp_path / "store", "--details")
    assert status == 0
    least = "c: a change of one machine of 5 % or more would be named within 10 days of jobs, one bad from the start "
    assert least in text
    assert least in answer(capsys, "test", "--node", "n1", "--store", tmp_path / "store", "--details")[1]
    assert "2026-01-31  c n2: dgemm_rate_flops lower" in text
    assert answer(capsys, "test", "--strict", "--store", tmp_path / "store")[0] == 1
    assert answer(capsys, "test", "--strict", "--node", "n1", "--store", tmp_path / "store")[0] == 0


@pytest.mark.slow
def test_where_only_huge_changes_would_be_named_the_answer_is_that_nothing_is_known(tmp_path, capsys) -> None:
    with open_store(tmp_path / "store") as store:  # six good days, six slow ones
        store.add_values(until_today(planted(4, 12, (Fault((2,), -0.05, 6),), 5)))
    at = "--store", tmp_path / "store"
    few = "12 days of jobs are too few to tell"
    status, text = answer(capsys, "test", *at)
    said = " ".join(text.split())
    assert (status, said.count(few)) == (2, 1)
    assert said.startswith(f"Unknown: {few} least only a change of one machine of 15 % or more would be named within 6")
    assert found(capsys, "test", *at)["unjudged"] == 4
    status, text = answer(capsys, "health", "n[1-4]", *at)
    assert status == 2
    assert f"n[1-4]: unknown ({few})" in " ".join(text.split())
    text = answer(capsys, "alert", "--prometheus", tmp_path / "f.prom", *at)[1]
    assert f"0 open regressions; unknown: {few}" in " ".join(text.split())
    assert 'least_change_ratio{cluster="c"} 0.15' in (tmp_path / "f.prom").read_text()


def test_one_sweep_names_the_node_that_is_unlike_its_peers_and_knows_nothing_else(tmp_path, capsys) -> None:
    values = until_today(planted(40, 1, (Fault((7,), -0.5, 0),), 5))
    with open_store(tmp_path / "store") as store:
        store.add_values(values)
    status, text = answer(capsys, "test", "--store", tmp_path / "store")
    assert (status, text[:22]) == (4, "Unlike its peers, c n7")
    status, text = answer(capsys, "health", "n[6-7]", "--store", tmp_path / "store")
    assert status == 4
    assert "n6: unknown (1 job of a factor, and 4 are needed)" in text


@pytest.mark.parametrize(
    ("days", "years_old", "why"),
    [(40, 3, "no node has had a value since 20"), (2, 0, "2 jobs of a factor, and 4 are needed")],
)
def test_old_values_and_two_jobs_are_unknown_with_a_status_of_their_own(days, years_old, why, tmp_path, capsys) -> None:
    values = until_today(planted(4, days))
    with open_store(tmp_path / "store") as store:
        store.add_values(values.assign(started_s=values["started_s"] - years_old * 365 * DAY_S))
    status, text = answer(capsys, "health", "n1", "--store", tmp_path / "store")
    assert (status, text.partition(why)[0]) == (2, "n1: unknown (")
    assert refusal(capsys, "health", "", "--store", tmp_path / "store").startswith("lepaute: NODES is empty")
