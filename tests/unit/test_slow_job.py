"""`lepaute why`: made runs whose course is known, what is planted in one of them, and what is refused."""

import json
import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lepaute as lp
from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.simulate.trace import Trace, trace_of_columns, write_trace
from lepaute.simulate.trace.graph import Graph
from lepaute.study.slow_job.course import course_of
from lepaute.study.slow_job.explaining import explained, facts_of
from lepaute.study.slow_job.matching import matched
from lepaute.study.slow_job.shares import _shapley, estimate

NAMES = ("MPI_Allreduce", "waiting_for_a_core", "MPI_Isend", "MPI_Irecv", "MPI_Waitall", "dgemm")
ALLREDUCE, NO_CORE, ISEND, IRECV, WAITALL, DGEMM = range(len(NAMES))
RANKS, NODES, STEPS = 8, 4, 40
LAMMPS = Path(__file__).parents[2] / "examples" / "recordings" / "lammps-lj.parquet"


def made_run(seed: int, *, ranks: int = RANKS, extra_call: bool = False, **planted: Any) -> Trace:
    """A recording of ranks that compute, exchange messages with their neighbours, compute again and reduce.

    planted : node (two ranks), core, first (step from which on they are slow), factor; dgemm, message, reduce: factors;
              waits: rank and seconds a step. Noise: 1 % of each piece, 0.5 % of all pieces of a run.
    """
    rng = np.random.default_rng(seed)
    common = 1 + 0.005 * rng.standard_normal()
    rows: list[tuple[float, ...]] = []

    def add(
        rank: int, name: int, start: float, end: float, *, peer: int = -1, size: float = 0.0, done: int = -1
    ) -> None:
        rows.append((rank, name, start, end - start, peer, size, done))

    time = np.zeros(ranks)
    for step in range(STEPS):
        noise = common * (1 + 0.01 * rng.standard_normal((4, ranks)))
        slow = np.ones(ranks)
        if step >= planted.get("first", 0):
            slow[planted.get("core", ranks) : planted.get("core", ranks) + 1] *= planted.get("factor", 1.0)
            for rank in range(ranks):
                slow[rank] *= planted.get("factor", 1.0) if rank // 2 == planted.get("node", -1) else 1.0
        own = time + 1e-3 * noise[0] * slow
        after = own + 1e-5
        link = 2e-4 * noise[1] * planted.get("message", 1.0)
        for rank in range(ranks):
            partner = rank ^ 1 if step % 2 else (rank + 1) % ranks if rank % 2 else (rank - 1) % ranks
            add(rank, IRECV, own[rank], own[rank], peer=partner, size=8e3, done=2 * step)
            add(rank, ISEND, own[rank], after[rank], peer=partner, size=8e3, done=2 * step)
            arrived = max(after[rank], own[partner] + link[rank])
            add(rank, WAITALL, after[rank], arrived, done=2 * step)
            time[rank] = arrived
        waiting = planted.get("waits", (-1, 0.0))
        for rank in range(ranks):
            end = time[rank] + 5e-4 * noise[2, rank] * slow[rank] * planted.get("dgemm", 1.0)
            add(rank, DGEMM, time[rank], end)
            if rank == waiting[0]:
                add(rank, NO_CORE, end, end + waiting[1])
                end += waiting[1]
            time[rank] = end
        met = time.max() + 5e-5 * noise[3] * planted.get("reduce", 1.0)
        for rank in range(ranks):
            add(rank, ALLREDUCE, time[rank], met[rank], size=8.0)
        time = met
        if extra_call and step == 3:
            add(0, ALLREDUCE, time[0], time[0] + 1e-6, size=16.0)
            time[0] += 1e-6
    return _recorded(rows, ranks, time)


def _recorded(rows: list[tuple[float, ...]], ranks: int, ends: Any) -> Trace:
    rank, name, start, duration, peer, size, done = (np.array(column) for column in zip(*rows, strict=True))
    columns = {
        "rank": rank,
        "name": name.astype(int),
        "start_s": start,
        "duration_s": duration,
        "peer": peer,
        "size_bytes": size,
        "completion": done,
        "tag": np.zeros(len(rank)),
        "comm": np.where((name == ALLREDUCE) & (size == 8.0), 0, -1),
        "kind": np.where((name == NO_CORE) | (name == DGEMM), 0, 1),
    }
    metadata = {
        "source": "recording",
        "application": "made",
        "whole": True,
        "ranks": ranks,
        "nodes": [number // 2 for number in range(ranks)],
        "hosts": [f"c-{number + 1}" for number in range(ranks // 2)],
        "created": "2023-11-27T09:00:00+00:00",
        "ends_s": ends.tolist(),
    }
    return trace_of_columns(columns, NAMES, metadata)


USUAL = [made_run(seed) for seed in range(1, 7)]


def replayed(trace: Trace) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """When each call ended in the run, and in a replay of its own weights."""
    course = course_of(trace, "run")
    pieces = matched(course, [course])
    weights = np.zeros((pieces.graph.count, 1))
    np.add.at(weights[:, 0], pieces.node, pieces.seconds[:, 0])
    return course.end_s, pieces.graph.replay(weights)[course.slots : course.slots + len(course.rank), 0]


@pytest.mark.parametrize("trace", [made_run(0, node=1, factor=1.3), lp.read_trace(LAMMPS)], ids=["made", "lammps"])
def test_a_run_replayed_with_its_weights_is_the_run(trace: Trace) -> None:
    real, again = replayed(trace)
    assert again == pytest.approx(real, abs=1e-9)


def test_ends_in_a_graph_are_those_of_the_longest_ways() -> None:
    rng = np.random.default_rng(1)
    pairs = np.array([(a, b) for b in range(1, 30) for a in rng.choice(b, min(b, 2), replace=False)])
    order = rng.permutation(30)  # so that numbers of nodes are in no order
    weights = rng.random((30, 3))
    ends = Graph(30, order[pairs[:, 0]], order[pairs[:, 1]], np.zeros(len(pairs), bool), np.zeros(30)).replay(weights)
    expected = weights.copy()
    for node in range(1, 30):
        before = [order[a] for a, b in pairs if b == node]
        expected[order[node]] += np.max([expected[one] for one in before], axis=0)
    assert ends == pytest.approx(expected)


def test_an_edge_that_makes_a_circle_goes_where_it_may() -> None:
    before, after = np.array([0, 1, 2]), np.array([1, 2, 0])
    graph = Graph(3, before, after, np.array([False, False, True]), np.array([1.0, 2.0, 3.0]))
    assert graph.replay(np.ones((3, 1)))[:, 0].tolist() == [1, 2, 3]


def test_shares_are_means_over_all_orders() -> None:
    rng = np.random.default_rng(3)
    times = rng.random((1, 8))
    expected = np.zeros(3)
    for order in permutations(range(3)):
        now = 0
        for part in order:
            expected[part] += (times[0, now] - times[0, now | 1 << part]) / 6
            now |= 1 << part
    assert _shapley(times, 3)[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        ({"node": 2, "factor": 1.25}, "Node c-3 computes"),
        ({"core": 5, "factor": 1.4, "first": 16}, "Rank 5 (node c-3) computes"),
        ({"dgemm": 1.3}, "dgemm takes"),
        ({"message": 4.0}, "Messages everywhere take"),
        ({"reduce": 6.0}, "MPI_Allreduce of 8 bytes takes"),
        ({"waits": (3, 2e-4)}, "Rank 3 (node c-2) waits for a core"),
    ],
)
def test_what_is_planted_is_named_first_with_its_size(planted: dict[str, Any], words: str) -> None:
    run, plain = made_run(99, **planted), made_run(99)
    answer = lp.why(run, USUAL)
    share = answer.causes[0].share
    really = (run.end_s.max() - plain.end_s.max()) / np.mean(answer.usual_s)
    assert really > 0.05
    assert answer.causes[0].sentence.startswith(words), answer.answer
    assert share.low is not None
    assert share.high is not None
    assert share.low - 0.005 <= really <= share.high + 0.005
    assert answer.state == "named"


def test_what_takes_several_times_as_long_is_in_times_and_advice_names_its_cause() -> None:
    answer, courses, _ = explained(made_run(99, node=2, factor=7.0, reduce=60.0), USUAL)
    text = answer.answer
    assert f"{1 + answer.excess.value:.1f} times as long as usual" in text
    assert f"which adds {answer.causes[0].share.value:.2f} times the usual time (95 %: " in text
    assert not re.search(r"\d{3}(\.\d)? %", text)
    first, second = (text for name, text in facts_of(answer, courses) if name == "do")
    assert first.startswith("computing of node c-3: ")
    assert second.startswith("MPI_Allreduce of 8 bytes: ")


def test_a_core_that_became_slow_has_the_moment() -> None:
    run = made_run(99, core=5, factor=1.4, first=16)
    (cause,) = lp.why(run, USUAL).causes
    begin = course_of(run, "run").start_s[np.flatnonzero(course_of(run, "run").rank == 5)][16 * 4]
    assert cause.since_s == pytest.approx(begin, abs=5e-3)
    assert "after 0.0" in cause.sentence


def test_a_usual_run_has_no_cause() -> None:
    answer = lp.why(made_run(50), USUAL)
    assert (answer.state, answer.causes) == ("nothing", ())
    assert "nothing stands out" in answer.answer


def test_shares_and_the_remainder_add_up() -> None:
    answer, _, _ = explained(made_run(99, node=2, factor=1.25, reduce=4.0), USUAL)
    assert len(answer.causes) == 2
    total = sum(cause.share.value for cause in answer.causes) + answer.remainder.value
    assert total == pytest.approx(answer.excess.value)


def test_one_usual_run_decides_nothing() -> None:
    answer = lp.why(made_run(99, node=2, factor=1.5), USUAL[:1])
    assert answer.state == "undecided"
    assert "does not show what is chance" in answer.answer
    assert answer.chance is None


def test_two_usual_runs_are_too_few_to_accuse() -> None:
    answer = lp.why(made_run(99, node=2, factor=1.5), USUAL[:2])
    assert (answer.state, answer.causes) == ("undecided", ())
    assert "2 usual runs are too few" in answer.answer


def test_runs_of_another_course_are_held_against_by_sums() -> None:
    others = [*USUAL[:5], made_run(7, extra_call=True)]
    answer = lp.why(made_run(99, node=2, factor=1.25), others)
    assert answer.causes[0].sentence.startswith("Node c-3")
    assert any("made other calls" in caveat for caveat in answer.caveats)


def test_the_interval_of_a_difference_is_students() -> None:
    # of 0, 2 and 4: mean 2, spread 2, and 4.30265 x 2 x sqrt(4/3)
    found = estimate(np.array([0.0, 2.0, 4.0]))
    assert found.high == pytest.approx(2 + 4.30265 * 2 * (4 / 3) ** 0.5, rel=1e-5)


@pytest.mark.parametrize(
    ("usual", "words"),
    [
        ([made_run(1, ranks=4)], "has 4 ranks, the run 8"),
        ([replace(USUAL[0], metadata={**USUAL[0].metadata, "application": "other"})], "is of other"),
        ([made_run(99)], "is the same run as the run"),
        ([*USUAL[:2], USUAL[0]], "usual run 3: is the same run as usual run 1"),
        ([replace(USUAL[0], metadata={**USUAL[0].metadata, "ended_by": "a signal"})], "ended by a signal"),
        ([replace(USUAL[0], size_bytes=USUAL[0].size_bytes * 2)], "of the calls of"),
        ([], "at least one"),
    ],
)
def test_what_is_not_comparable_is_refused(usual: list[Trace], words: str) -> None:
    with pytest.raises(InputError, match=words):
        lp.why(made_run(99), usual)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for at, trace in enumerate(USUAL):
        write_trace(trace, folder / f"usual{at}.parquet")
    write_trace(made_run(99, node=2, factor=1.25), folder / "slow.parquet")
    write_trace(made_run(50), folder / "fine.parquet")
    return folder


def words_of(folder: Path, run: str, *more: str) -> list[str]:
    return ["why", str(folder / run), "--usual", *(str(folder / f"usual{at}.parquet") for at in range(6)), *more]


def test_the_command_takes_all_files_after_usual(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words_of(files, "slow.parquet")) == 1
    assert "Node c-3 computes" in capsys.readouterr().out.splitlines()[0]
    assert main(words_of(files, "fine.parquet")) == 0
    assert main(words_of(files, "slow.parquet")[:4]) == 3
    (_, run, *usual) = words_of(files, "slow.parquet")
    assert main(["why", *usual, run]) == 2  # the run is taken for a usual one, and none is left
    assert "missing argument 'RUN'" in capsys.readouterr().err


def test_json_begins_with_the_answer(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(words_of(files, "slow.parquet", "--json"))
    document = json.loads(capsys.readouterr().out)
    assert next(iter(document)) == "answer"
    assert document["causes"][0]["place"] == [2]
    assert len(document["usual_s"]) == 6


def test_the_page_has_the_answer_and_both_runs(files: Path, tmp_path: Path) -> None:
    main(words_of(files, "slow.parquet", "--report", str(tmp_path / "p.html")))
    page = (tmp_path / "p.html").read_text()
    assert "Node c-3 computes" in page
    assert page.count("<svg") >= 2


def test_a_store_supports_what_is_named(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hostile.cases import write_store

    write_store(tmp_path)  # node 1 of cluster c became slower in November 2023, node 2 did not
    main(words_of(files, "slow.parquet", "--store", str(tmp_path / "written" / "store")))
    text = capsys.readouterr().out
    assert "c-1" in text
    assert "dgemm_rate_flops" in text
    assert "no values of c-3" in text
