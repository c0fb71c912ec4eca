"""How long a prediction takes and which calls it makes; the pages of docs/evidence are current."""

import gc
import os
import re
import sys
from pathlib import Path

import pytest

from lepaute.simulate import Hpl, Layers, predict
from lepaute.simulate import native as native_module
from lepaute.simulate.apps.hpl.kernel_calls import kernel_calls
from lepaute.simulate.apps.hpl.work import events_of, events_of_run, events_of_steps, exchange_messages, simulated_steps
from lepaute.simulate.conditions import Conditions
from lepaute.simulate.native import Native, shared_machine
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.io import override
from lepaute.simulate.prediction.predicting import simulate_one
from lepaute.simulate.tracing import TraceRequest


def test_an_exchange_has_the_messages_that_the_real_hpl_was_counted_to_send():
    # P log2 P for powers of two; 3, 5 and 7 ranks: 2 + 3, 8 + 3 and 8 + 9, from counts of the real program.
    assert [exchange_messages(p) for p in (1, 2, 4, 8, 3, 5, 7)] == [0, 2, 8, 24, 5, 11, 17]


@pytest.mark.parametrize(
    "hpl",
    [
        Hpl(n=4000, p=4, q=4), Hpl(n=4000, p=4, q=4, depth=0), Hpl(n=4000, p=8, q=1), Hpl(n=4000, p=7, q=3, nb=100),
        Hpl(n=4000, p=3, q=8, bcast="1ring-modified"), Hpl(n=4000, p=2, q=24, nb=64, depth=2),
        Hpl(n=4000, p=8, q=8, bcast="long"), Hpl(n=4000, p=7, q=3, swap="spread-roll"),
        Hpl(n=4000, p=8, q=8, swap="mix", bcast="long-modified"),
    ],
)  # fmt: skip
def test_the_formula_counts_the_messages_of_the_engine(hpl):
    counted = predict(hpl, load_platform("dahu"), runs=1).simulation.messages
    messages = events_of(hpl) - hpl.steps * hpl.ranks  # what is left are point-to-point messages
    assert messages == pytest.approx(counted, rel=0.05)


class Truth:
    """An engine whose events cost what is said; `measure` is what an estimate calls."""

    def __init__(self, event_s, start_s=0.0):
        self.event_s, self.start_s, self.measured_s = event_s, start_s, []

    def measure(self, hpl, trial_steps=0):
        steps = simulated_steps(hpl, trial_steps=trial_steps)
        events = events_of_steps(hpl, steps, solve=trial_steps == 0)
        self.measured_s.append(self.start_s + self.event_s * events)
        return self.measured_s[-1]


@pytest.mark.parametrize(
    ("hpl", "runs", "cores", "start_s", "fidelity"),
    [
        (Hpl(n=100_000, p=32, q=32), 10, 2, 0.05, "full"),
        (Hpl(n=24_000_000, nb=1024, p=256, q=294), 1, 1, 0.5, "sampled"),
        (Hpl(n=1000, p=32, q=32), 1000, 1, 0.0, "full"),
    ],
)
def test_the_costs_of_events_and_of_the_start_are_found_again(hpl, runs, cores, start_s, fidelity):
    truth = Truth(5e-7, start_s)
    (run_s,) = hpl.on().estimated_run_s([hpl], runs, cores, truth.measure, fidelity)
    events = events_of_steps(hpl, simulated_steps(hpl, sampled=fidelity == "sampled"), solve=True)
    assert run_s == pytest.approx(start_s + truth.event_s * events, rel=0.05)
    assert sum(truth.measured_s) < 0.03 * runs / cores * run_s + 0.1 or fidelity == "sampled"


@pytest.mark.parametrize("depth", [0, 1, 16])
@pytest.mark.parametrize(("steps", "q"), [(484, 1), (500, 9), (1000, 37), (1100, 300)])
def test_the_steps_announced_are_those_that_a_sampled_run_simulates(steps, q, depth):
    # Blocks of one column and a single process row: steps cost next to nothing.
    hpl = Hpl(n=steps, nb=1, p=1, q=q, depth=depth)
    sampling = simulate_one(hpl, override(load_platform("dahu"), {"nodes.count": "32"}), fidelity="sampled").sampling
    announced = [len(simulated_steps(hpl, sampled=True, further=further)) for further in (False, True)]
    assert (steps if sampling is None else sampling.simulated_steps) in announced
    assert hpl.on().simulated_share("sampled") == announced[0] / steps


@pytest.mark.parametrize(
    ("platform", "hpl", "further"),
    [
        ("dahu", Hpl(n=100_000, nb=96, p=8, q=8), False),
        ("stampede-like", Hpl(n=250_000, nb=256, p=15, q=16), True),  # equal nodes
    ],
)
def test_where_ranks_wait_in_waves_a_sampled_run_goes_back_for_further_windows(platform, hpl, further):
    sampling = simulate_one(hpl, load_platform(platform), fidelity="sampled").sampling
    fewer, more = (len(simulated_steps(hpl, sampled=True, further=further)) for further in (False, True))
    assert fewer < 0.8 * more
    assert sampling.simulated_steps == (more if further else fewer)
    # Half-way by the ratio is what is announced.
    each = [events_of_steps(hpl, simulated_steps(hpl, sampled=True, further=one), solve=True) for one in (False, True)]
    announced = events_of_run(hpl, sampled=True)
    assert announced**2 == pytest.approx(each[0] * each[1])
    assert each[1] / announced < 1.3


ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "validation"))

import what_to_trust  # noqa: E402
from support.report import DATA, EVIDENCE, PAGES, read_goals  # noqa: E402

MAX_WORDS = 24_000


def test_what_to_trust_is_what_the_committed_tables_say_and_pages_have_the_sections_of_their_scripts() -> None:
    page = (EVIDENCE / "index.md").read_text(encoding="utf-8")
    found = re.search(
        r"<!-- begin what_to_trust: generated, do not edit -->\n(.*?)\n<!-- end what_to_trust -->", page, re.DOTALL
    )
    assert found.group(1) == what_to_trust.section(EVIDENCE / DATA), "run validation/what_to_trust.py"
    for page, studies in PAGES.items():
        text = (EVIDENCE / f"{page}.md").read_text(encoding="utf-8")
        assert tuple(re.findall(r"<!-- begin (\w+): generated", text)) == studies


def test_every_goal_that_a_page_shows_as_missed_is_in_the_table_of_goals() -> None:
    missed = {(row["study"], row["what"]) for row in read_goals(EVIDENCE / DATA / "goals.csv") if row["met"] == "NO"}
    for page, studies in PAGES.items():
        text = (EVIDENCE / f"{page}.md").read_text(encoding="utf-8")
        for study in studies:
            section = text.split(f"<!-- begin {study}: ")[1].split(f"<!-- end {study} -->")[0]
            tables = re.findall(r"^\|  \|.*\| met \|$(?:\n\|.*\|$)+", section, re.MULTILINE)
            rows = [line for table in tables for line in table.splitlines() if line.endswith("| NO |")]
            shown = {row.split("|")[1].strip() for row in rows}
            assert shown == {what for of, what in missed if of == study}


@pytest.mark.parametrize("page", sorted(EVIDENCE.glob("*.md")), ids=lambda page: page.stem)
def test_tables_pictures_and_pages_that_a_page_links_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(((?:data/|\.\./images/)[^)#]+|\w+\.md)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).is_file(), target


def test_the_pages_stay_short_enough_to_be_read() -> None:
    texts = [page.read_text(encoding="utf-8").replace("|", " ") for page in EVIDENCE.glob("*.md")]
    assert sum(len(text.split()) for text in texts) <= MAX_WORDS


def flops(table) -> float:
    return sum(2.0 * m * n * k * calls for m, n, k, calls, _ in table.sizes_of(("dgemm", "dgemm_nn")))


def test_where_all_is_looked_at_every_call_is_counted_once() -> None:
    hpl = Hpl(n=1500, nb=64, p=2, q=2)
    table = kernel_calls(hpl)
    still = Layers.only()
    trace = predict(hpl, load_platform("dahu"), runs=1, layers=still, fidelity="full", trace=TraceRequest()).trace
    inside = trace.where((trace.kind == 0) & (trace.step >= 0))
    assert (table.ranks, table.steps) == (4, hpl.steps)
    assert table.calls.sum() == pytest.approx(len(inside))
    assert table.time_s.sum() == pytest.approx(inside.duration_s.sum())
    rows = list(zip(table.kernel, table.m, table.n, table.k, strict=True))
    assert len(rows) == len(set(rows))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "nb", "grid"), [(20_000, 128, (4, 4)), (12_000, 96, (2, 8))])
def test_a_part_of_the_ranks_and_steps_stands_for_all(n: int, nb: int, grid: tuple[int, int]) -> None:
    hpl = Hpl(n=n, nb=nb, p=grid[0], q=grid[1])
    table = kernel_calls(hpl)
    assert table.ranks * table.steps < hpl.ranks * hpl.steps
    assert flops(table) == pytest.approx(hpl.flop_count, rel=0.05)  # dgemm does nearly all of them


@pytest.mark.slow
@pytest.mark.long
def test_a_run_that_is_only_sampled_has_its_calls_as_well() -> None:
    hpl = Hpl(n=300_000, nb=128, p=32, q=32)  # 2344 steps of 1024 ranks
    assert flops(kernel_calls(hpl)) == pytest.approx(hpl.flop_count, rel=0.1)


def test_more_ranks_than_the_shipped_nodes_hold_are_placed_on_more_of_them() -> None:
    assert kernel_calls(Hpl(n=5_000, nb=256, p=40, q=40)).calls.sum() > 0


SMALL = Hpl(n=600, nb=64, p=2, q=2)


def test_a_machine_is_made_once_of_a_platform_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = native_module.machine_of
    monkeypatch.setattr(native_module, "machine_of", lambda *given: made.append(1) or make(*given))
    platform = load_platform("dahu").model_copy(update={"name": "own"})
    predict(SMALL, platform, runs=3, parts=True)
    assert len(made) == 1
    assert shared_machine(SMALL, platform, 1) is shared_machine(SMALL, platform, 1)
    other = platform.model_copy(update={"network": platform.network.model_copy(update={"flow_factor": "scale"})})
    assert shared_machine(SMALL, other, 1) is not shared_machine(SMALL, platform, 1)
    known = len(native_module._MACHINES)
    del platform, other
    gc.collect()
    assert len(native_module._MACHINES) <= known - 2


@pytest.mark.parametrize("cores", [1, 3])
def test_the_prices_of_draws_are_the_same_on_any_number_of_cores(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    simulator = Native().on(Conditions(load_platform("dahu")))
    simulator.prepare(SMALL)
    simulator.run(SMALL, 1, first=False, priced=True)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(cores)))
    seeds = range(1, 12)
    assert simulator.effects(SMALL, seeds) == [simulator.effects(SMALL, [seed])[0] for seed in seeds]
