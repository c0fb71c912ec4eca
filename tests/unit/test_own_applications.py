"""Applications of one's own: what their ranks yield, against twins that are slow and obvious."""

import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support_own import NOTHING, calls_of, fixed, time_of

import lepaute as lp
from lepaute.errors import InputError, SimulationError
from lepaute.simulate.apps.own.loading import loaded
from lepaute.simulate.apps.own.rank import Cartesian
from lepaute.simulate.apps.own.values import kernel_of
from lepaute.study.configuration import Configurations
from lepaute.study.schema import load_study

CG = Path(__file__).parents[2] / "examples" / "applications" / "cg.py"


def test_computing_takes_what_it_costs_and_ranks_wait_for_each_other() -> None:
    def course(me: Any, app: Any) -> Any:
        yield me.compute(app.unit, 2.0 if me.rank else 1.0)
        yield me.barrier()
        yield me.compute(app.unit, 1.0)

    assert time_of(course, 4) == pytest.approx(3.0, rel=1e-4)


def test_a_rendezvous_waits_for_its_receive_and_an_eager_message_does_not() -> None:
    def course(size_bytes: float) -> Any:
        def ranks(me: Any, app: Any) -> Any:
            if me.rank == 0:
                yield me.send(1, size_bytes)
                yield me.compute(app.unit, 1.0)
            else:
                yield me.compute(app.unit, 1.0)
                yield me.receive(0)

        return ranks

    assert time_of(course(100)) == pytest.approx(1.0, rel=1e-4)
    assert time_of(course(1e6)) == pytest.approx(2.0, rel=1e-3)


def test_a_nonblocking_send_overlaps_with_computing() -> None:
    def course(me: Any, app: Any) -> Any:
        if me.rank == 0:
            request = yield me.isend(1, 1e9)
            yield me.compute(app.unit, 1.0)
            yield me.wait(request)
        else:
            request = yield me.irecv(0)
            yield me.wait(request)

    def blocking(me: Any, app: Any) -> Any:
        if me.rank == 0:
            yield me.send(1, 1e9)
            yield me.compute(app.unit, 1.0)
        else:
            yield me.receive(0)

    alone_s = time_of(blocking) - 1.0
    assert 0.01 < alone_s < 0.9
    assert time_of(course) == pytest.approx(1.0, rel=1e-3)


def test_a_receive_from_any_source_takes_what_was_sent_first() -> None:
    def course(me: Any, app: Any) -> Any:
        if me.rank == 0:
            for _ in range(3):
                yield me.receive()
        else:
            yield me.compute(app.unit, 4.0 - me.rank)
            yield me.send(0, 8 * me.rank)

    rows = calls_of(course, 4)
    received = rows[(rows["rank"] == 0) & (rows["name"] == "MPI_Recv")]
    assert received["peer"].tolist() == [3, 2, 1]
    assert received["size_bytes"].tolist() == [24.0, 16.0, 8.0]


def test_waitany_goes_on_with_the_request_that_ends_first() -> None:
    def course(me: Any, app: Any) -> Any:
        if me.rank == 0:
            requests = [(yield me.irecv(1)), (yield me.irecv(2)), (yield me.irecv(3))]
            yield me.waitany(requests)
            yield me.compute(app.unit, 10.0)
            yield me.waitall(requests)
        else:
            yield me.compute(app.unit, (3.0, 1.0, 2.0)[me.rank - 1])
            yield me.send(0, 8)

    rows = calls_of(course, 4)
    assert rows[(rows["rank"] == 0) & (rows["name"] == "MPI_Waitany")]["peer"].tolist() == [2]
    assert time_of(course, 4) == pytest.approx(11.0, rel=1e-4)


def matched(sends: list[tuple[int, int, int]], receives: list[tuple[int, int | None]]) -> dict[int, int]:
    """The bytes that each receive of a rank gets, by MPI's rules. sends: source, tag, bytes in order of each source."""
    got: dict[int, int] = {}
    for source, tag, size in sends:
        for at, (of, wanted) in enumerate(receives):
            if at not in got and of == source and wanted in (None, tag):
                got[at] = size
                break
    return got


@pytest.mark.parametrize("seed", range(8))
def test_messages_are_matched_as_a_slow_twin_matches_them(seed: int) -> None:
    draw = random.Random(seed)
    ranks = 4
    sent = {rank: [] for rank in range(ranks)}  # what each is sent: source, tag, bytes, in the order of each source
    for source in range(ranks):
        for _ in range(6):
            size = draw.choice((8, 800, 100_000)) + draw.randrange(1000)
            sent[draw.randrange(ranks)].append((source, draw.randrange(2), size))
    received = {}
    for rank, messages in sent.items():
        wanted = [(source, tag if draw.random() < 0.7 else None) for source, tag, _ in messages]
        draw.shuffle(wanted)
        received[rank] = wanted
    if any(len(matched(sent[rank], received[rank])) < len(sent[rank]) for rank in range(ranks)):
        received = {rank: [(source, None) for source, _, _ in messages] for rank, messages in sent.items()}

    def course(me: Any, app: Any) -> Any:
        requests = []
        pauses = random.Random(f"{seed} {me.rank}")
        for source, tag in received[me.rank]:
            yield me.compute(app.unit, pauses.choice((0.0, 1e-6, 1e-3)))
            requests.append((yield me.irecv(source, tag)))
        others = []
        for target in range(ranks):
            for source, tag, size in sent[target]:
                if source == me.rank:
                    yield me.compute(app.unit, pauses.choice((0.0, 1e-6, 1e-3)))
                    others.append((yield me.isend(target, size, tag)))
        for request in requests:
            yield me.wait(request)
        yield me.waitall(others)

    rows = calls_of(course, ranks)
    for rank in range(ranks):
        waits = rows[(rows["rank"] == rank) & (rows["name"] == "MPI_Wait")]
        twin = matched(sent[rank], received[rank])
        assert waits["size_bytes"].tolist()[: len(twin)] == [float(twin[at]) for at in range(len(twin))]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_collectives_send_as_many_messages_as_their_algorithms(ranks: int) -> None:
    rounds = (ranks - 1).bit_length()
    expected = {
        ("barrier", None): ranks * rounds, ("bcast", None): ranks - 1, ("reduce", None): ranks - 1,
        ("gather", None): ranks - 1, ("scatter", None): ranks - 1, ("allgather", "ring"): ranks * (ranks - 1),
        ("allgather", "bruck"): ranks * rounds, ("alltoall", "pairwise"): ranks * (ranks - 1),
        ("alltoall", "bruck"): ranks * rounds, ("allreduce", "binomial"): 2 * (ranks - 1),
        ("allgather", "recursive-doubling"): ranks * rounds, ("alltoall", "linear-posted"): ranks * (ranks - 1),
    }  # fmt: skip
    for (what, algorithm), messages in expected.items():

        def course(me: Any, app: Any, what: str = what, algorithm: str | None = algorithm) -> Any:
            more = {} if algorithm is None else {"algorithm": algorithm}
            yield me.compute(app.unit, 1e-6)
            yield getattr(me, what)(*(() if what == "barrier" else (8,)), **more)

        assert lp.predict(fixed(course, ranks), "dahu", runs=1).simulation.messages == messages, what


def test_neighbours_are_those_of_the_stencil() -> None:
    corner = Cartesian(0, lp.Grid("3x3x3"), periodic=False)
    assert sorted(order for _, order in corner.neighbours(27)) == [1, 1, 1, 2, 2, 2, 3]
    middle = Cartesian(13, lp.Grid("3x3x3"), periodic=False)
    assert len(middle.neighbours(27)) == 26
    assert [rank for rank, _ in middle.neighbours(7)] == [4, 10, 12, 14, 16, 22]
    assert Cartesian(0, lp.Grid("4"), periodic=True).neighbours(3) == [(3, 1), (1, 1)]
    with pytest.raises(InputError, match="on a grid of 2 dimensions it is 5 or 9"):
        Cartesian(0, lp.Grid("2x2"), periodic=False).neighbours(27)


WRONG = {
    "deadlock": (
        lambda me, _app: (me.receive(1 - me.rank) for _ in range(1)),
        r"deadlock: rank 0 in receive \(test_own_applications.py:\d+\) from rank 1, any tag; rank 1 in receive",
    ),
    "two rendezvous": (
        lambda me, _app: (op for op in (me.send(1 - me.rank, 1e6), me.receive())),
        r"deadlock: rank 0 in send \(.*:\d+\) to rank 1, tag 0; rank 1 in send",
    ),
    "never received": (
        lambda me, _app: (me.send(1, 80, tag=3) for _ in range(1 - me.rank)),
        r"rank 1 never receives 80 bytes from rank 0, tag 3, of send \(.*:\d+\)",
    ),
    "never sent": (
        lambda me, _app: (me.irecv(1, 4) for _ in range(1 - me.rank)),
        r"rank 0 never gets what it receives from rank 1, tag 4 by irecv \(.*:\d+\)",
    ),
}


MISUSE = {
    "left out": (
        lambda me, _app: (me.allreduce(8) for _ in range(2 - me.rank)),
        r"rank 0 calls allreduce of 8 bytes \(.*:\d+\), which rank 1 leaves out",
    ),
    "another one": (
        lambda me, _app: (me.barrier() if me.rank else me.bcast(8, root=1) for _ in range(1)),
        r"rank 1 calls barrier \(.*:\d+\) where rank 0 calls bcast of 8 bytes, root 1 \(",
    ),
    "no operation": (lambda _me, _app: (3 for _ in range(1)), r".*py:\d+: yields 3; yield what the methods of me make"),
    "rank": (lambda me, _app: (me.send(2, 8) for _ in range(1)), r".*py:\d+: the rank sent to is 2; .* 0 to 1"),
    "kernel": (lambda me, _app: (me.compute("dgem", 8) for _ in range(1)), r".*py:\d+: there is no kernel 'dgem'"),
    "error": (lambda me, _app: (me.send(1 // 0, 8) for _ in range(1)), r".*py:\d+: ZeroDivisionError: .*; on rank 0"),
}


@pytest.mark.parametrize("what", [*WRONG, *MISUSE])
def test_what_ends_in_nothing_or_may_not_be_is_told_with_ranks_calls_and_lines(what):
    course, message = (WRONG | MISUSE)[what]
    with pytest.raises(SimulationError if what in WRONG else InputError, match=message):
        time_of(course)


class Drawn(lp.Application):
    ranks: int = 2
    unit = lp.Cost(1.0)

    def run(self, me: Any) -> Any:
        yield me.compute(self.unit, me.random.random())
        yield me.barrier()


def test_random_numbers_are_others_in_each_run_and_the_same_for_a_seed() -> None:
    runs = [run.time_s for run in lp.predict(Drawn(), "dahu", runs=4, seed=5, layers=NOTHING).run_list]
    assert len(set(runs)) == 4
    again = [lp.simulate_one(Drawn(), "dahu", seed, layers=NOTHING).time_s for seed in (8, 5, 7, 6)]
    assert again == [runs[3], runs[0], runs[2], runs[1]]


def test_the_error_of_a_cost_is_a_part_of_the_interval_and_its_noise_another() -> None:
    cg = loaded(str(CG))(grid="2x1x1", n=20, iterations=3)
    found = lp.predict(cg, "dahu", runs=20, parts=True)
    assert {"discrepancy", "noise"} <= set(found.parts.relative_sd)
    assert found.parts.relative_sd["discrepancy"] == pytest.approx(0.05, rel=0.6)
    assert lp.predict(cg, "dahu", runs=5, layers=NOTHING).time_s.half_width_percent == pytest.approx(0.0, abs=1e-9)


def test_the_memory_share_makes_ranks_faster_where_fewer_share_a_node() -> None:
    shipped = lp.load_platform("dahu")
    known = lp.override(shipped, {"nodes.memory_bandwidth_Bps": "100e9", "nodes.core_memory_bandwidth_Bps": "12.5e9"})
    full = kernel_of(("work", 1.0, 0.0, 0.0, 1.0), known)
    alone_s = 1.0 / (1.0 + full.crowding[-1].increase)
    assert full.crowding[-1].share == 1.0
    assert alone_s == pytest.approx(100 / 12.5 / known.nodes.cores, rel=1e-6)
    assert kernel_of(("work", 1.0, 0.0, 0.0, 1.0), shipped).crowding == []


def test_steps_that_repeat_each_other_are_kept_once() -> None:
    cg = loaded(str(CG))
    short, long = (cg(grid="2x2x2", n=10, iterations=count).on().laid() for count in (2, 2000))
    assert [len(code.ops) for code in long.parameters.rank_code] == [
        len(code.ops) for code in short.parameters.rank_code
    ]
    assert (long.steps, long.events) == (2000, pytest.approx(1000 * short.events))


def test_fields_become_options_and_the_whole_product_follows(tmp_path, output_of, json_of):
    command = ["predict", f"{CG}:Cg", "-p", "dahu", "--n", "16", "--iterations", "4", "--runs", "3", "--no-parts"]
    gantt, trace = tmp_path / "gantt.svg", tmp_path / "cg.parquet"
    told = json_of(*command, "--grid", "2x2x2", "--json", "--against", "n=20", "--gantt", gantt, "--trace", trace)
    assert told["application"] == "cg"
    assert told["parameters"]["grid"] == [2, 2, 2]
    assert told["differences"][0]["field"] == "n"
    assert told["time_s"]["low"] < told["time_s"]["mean"] < told["time_s"]["high"]
    assert gantt.stat().st_size > 1000
    assert {"MPI_Waitall", "spmv", "allreduce"} <= set(lp.read_trace(trace).names)
    assert len(json_of(*command, "--grid", "2x2x2,4x2x2", "--json")["predictions"]) == 2
    assert "Points of a process along each dimension" in output_of("predict", CG, "--help")


REFUSED = {
    "import lepaute as lp\nclass A(lp.Application):\n    steps: int = 3\n": "that name has a meaning of its own",
    "import lepaute as lp\nclass A(lp.Application):\n    a: list = 3\n": "a parameter is an int, a float, a str",
    "import lepaute as lp\n1 / 0\n": r"app.py:2: ZeroDivisionError: division by zero",
    "x = 1\n": "app.py: a class that derives from lp.Application is missing",
    "import lepaute as lp\nclass A(lp.Application):\n    n: int = 3\n": "A has no number of ranks",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_file_without_an_application_is_refused_in_one_line(text, tmp_path, refusal_of):
    (tmp_path / "app.py").write_text(text)
    said = refusal_of("predict", f"{tmp_path}/app.py", "-p", "dahu")
    assert re.search(REFUSED[text], said), said


STUDY = """
format: lepaute-study/1
question: tune
base:
  application: {{class: {file}:Cg, grid: 2x2x2, iterations: 3}}
  platform: dahu
factors:
  n: {{path: application.n, levels: [12, 24]}}
  grid: {{path: application.grid, levels: [2x2x2, 8x1x1]}}
budget: {{simulations: 20}}
"""


@pytest.mark.slow
def test_a_study_tunes_an_application_of_ones_own_and_knows_when_its_code_has_changed(tmp_path: Path) -> None:
    shutil.copy(CG, tmp_path / "cg.py")
    (tmp_path / "study.yaml").write_text(STUDY.format(file="cg.py"))
    answer = lp.study.run(tmp_path / "study.yaml", folder=tmp_path / "out")
    assert lp.study.run(tmp_path / "out" / "study.yaml").text == answer.text
    assert answer.answer.to_dict()["best"]["n"] == 12

    def digests() -> set[str]:
        configurations = Configurations(load_study(tmp_path / "study.yaml"), tmp_path)
        return {configurations.at(point).digest for point in configurations.points()}

    before = digests()
    assert digests() == before
    (tmp_path / "cg.py").write_text(CG.read_text().replace("allreduce(8)", "allreduce(16)"))
    assert not digests() & before
