"""The slow state of a machine against a slow twin, and the energy of a run by hand."""

import random
from math import sqrt
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.errors import InputError, PlatformError
from lepaute.measure.verify.campaign import Case
from lepaute.measure.verify.report import slow_state_line
from lepaute.simulate import Hpl, Stencil, difference, predict, read_prediction
from lepaute.simulate.platform import load_platform, override
from lepaute.simulate.platform.io import parse_platform
from lepaute.simulate.platform.nodes import Power
from lepaute.simulate.platform.plausibility import implausible
from lepaute.simulate.prediction.wording import slow_state_sentence
from lepaute.simulate.slow_state import SlowNodes
from lepaute.study.running import run_study

HPL = Hpl(n=2000, nb=128, p=2, q=2)
SLOW = "{share: 0.08, length_s: 4, factor: 1.75}"


def twin_s(slow: SlowNodes, time_s: float, rng: random.Random) -> float:
    """How long a run takes on nodes that each go from state to state by themselves."""
    states = [rng.random() < slow.share for _ in range(slow.nodes)]
    ends = [rng.expovariate(1.0 / (slow.length_s if state else slow.gap_s)) for state in states]
    date = done = 0.0
    while True:
        node = min(range(slow.nodes), key=ends.__getitem__)
        pace = 1.0 / slow.factor if any(states) else 1.0
        if done + (ends[node] - date) * pace >= time_s:
            return date + (time_s - done) / pace
        done, date = done + (ends[node] - date) * pace, ends[node]
        states[node] = not states[node]
        ends[node] += rng.expovariate(1.0 / (slow.length_s if states[node] else slow.gap_s))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slow", "time_s"),
    [
        (SlowNodes(1, 0.08, 4.0, 1.75), 1e-3),
        (SlowNodes(1, 0.08, 4.0, 1.75), 5.0),
        (SlowNodes(1, 0.08, 4.0, 1.75), 100.0),
        (SlowNodes(8, 0.02, 2.0, 3.0), 10.0),
        (SlowNodes(3, 0.3, 1.0, 2.0), 20.0),
    ],
    ids=str,
)
def test_runs_and_their_distribution_are_those_of_nodes_that_change_state_by_themselves(slow, time_s):
    count, rng = 4000, random.Random(1)
    effect = slow.effect(time_s, time_s, time_s)
    ratios = sorted(twin_s(slow, time_s, rng) / time_s for _ in range(count))
    drawn = sorted(slow.slowed_s(time_s, 1, seed) / time_s for seed in range(count))
    met = sum(ratio > 1.0 + 1e-9 for ratio in ratios) / count
    mean = sum(ratios) / count
    error = sqrt(sum((ratio - mean) ** 2 for ratio in ratios)) / count
    assert sum(drawn) / count == pytest.approx(mean, abs=5.0 * error)
    assert effect.mean == pytest.approx(mean, abs=5.0 * error)
    assert effect.share == pytest.approx(met, abs=5.0 * sqrt(max(met * (1.0 - met), 0.01) / count))
    assert sum(ratio > 1.0 + 1e-9 for ratio in drawn) / count == pytest.approx(met, abs=0.04)
    for at, end in ((0.025, effect.low), (0.975, effect.high)):
        # its place among the runs, within five standard deviations, where the slow state is certain to differ
        assert (
            ratios[int(count * max(0.0, at - 0.013))] - 1e-9
            <= end
            <= ratios[int(count * min(0.999, at + 0.013))] + 1e-9
        )


def test_errors_are_of_a_machine_and_widen_what_runs_of_all_machines_take():
    sure, unsure = SlowNodes(1, 0.3, 1.0, 2.0), SlowNodes(1, 0.3, 1.0, 2.0, 0.0, (0.4, 0.4, 0.4))
    times = [unsure.slowed_s(1e6, 1, seed) for seed in range(3)]
    assert len(set(times)) == 1  # one machine
    assert unsure.slowed_s(1e6, 2, 0) != times[0]
    high, low = (slow.effect(1e6, 1e6, 1e6).high for slow in (unsure, sure))
    assert high > 1.1 * low


@pytest.mark.slow
def test_an_undisturbed_prediction_is_the_same_bit_for_bit_and_that_of_any_run_is_beside_it(dahu, tmp_path):
    plain = predict(HPL, dahu, runs=10)
    slow = override(dahu, {"slow_state": SLOW, "power": "{idle_W: 1, computing_W: 2, communicating_W: 2}"})
    both = predict(HPL, slow, runs=10)
    assert [run.time_s for run in both.run_list] == [run.time_s for run in plain.run_list]
    assert (both.time_s, both.rate) == (plain.time_s, plain.rate)
    assert plain.any is None
    assert "any" not in plain.to_dict()
    assert slow_state_sentence(plain) == ""
    found = both.to_dict()["any"]
    assert set(found) == {"time_s", "rate_gflops", "share_of_runs", "slower_by_most"}
    # It takes 0.1 s: one run in twelve begins in the slow state.
    assert found["share_of_runs"] == pytest.approx(0.082, abs=0.002)
    assert found["slower_by_most"] == pytest.approx(1.75)
    assert found["time_s"]["mean"] == pytest.approx(both.time_s.mean * (1.0 + 0.08 * 0.75), rel=0.01)
    assert both.time_s.high < found["time_s"]["high"] < 1.75 * both.time_s.high
    assert slow_state_sentence(both) == (
        "About one run in 12 meets the slow state of this machine and takes up to 1.8 times as long"
    )

    anyway = predict(HPL, slow, runs=60, state="any")
    assert (anyway.time_s, anyway.rate) == (anyway.any.time_s, anyway.any.rate)
    assert anyway.undisturbed_time_s.high < anyway.time_s.high
    assert anyway.to_dict()["parameters"]["state"] == "any"
    ratios = [run.time_s / run.undisturbed.time_s for run in anyway.run_list]
    energies = [run.energy_j / run.undisturbed.energy_j for run in anyway.run_list]
    assert 1 <= sum(ratio > 1.0 for ratio in ratios) <= 14  # one in 12.2 of 60: 1 to 14 in all but 1 of 100 cases
    assert energies == pytest.approx(ratios)
    assert anyway.energy_j.high > anyway.undisturbed_time_s.high * anyway.energy_j.mean / anyway.time_s.mean
    with pytest.raises(InputError, match="differ in state"):
        difference(both, predict(HPL, slow, runs=10, state="any"))
    anyway.to_json(tmp_path / "any.json")
    again = read_prediction(tmp_path / "any.json")
    assert (again.any, again.time_s, again.state) == (anyway.any, anyway.time_s, "any")
    assert again.undisturbed_time_s == anyway.undisturbed_time_s


def test_the_sentence_follows_the_answer_and_options_choose_the_runs(output_of, json_of, dahu, tmp_path):
    override(dahu, {"slow_state": SLOW}).to_yaml(tmp_path / "p.yaml")
    words = ["predict", "hpl", "-p", str(tmp_path / "p.yaml"), "--n", "500", "--runs", "8", "--no-parts"]
    shown = [output_of(*words, *options).splitlines()[0] for options in ([], ["--any"], ["--undisturbed"])]
    assert ". About one run in 12 meets the slow state of this machine and takes up to 1.8 times as long" in shown[0]
    assert "; undisturbed: " in shown[1]
    assert shown[2] == shown[0]
    usual, anyway = (json_of(*words, option, "--json") for option in ("--undisturbed", "--any"))
    assert usual["time_s"] == anyway["undisturbed_time_s"]
    assert anyway["time_s"] == anyway["any"]["time_s"] == usual["any"]["time_s"]
    shown = output_of("platform", "show", tmp_path / "p.yaml")
    assert "8.0 % of the time a node takes 1.75 times as long, for 4.0 s on average" in shown
    assert main(["platform", "check", str(tmp_path / "p.yaml")]) == 0
    wild = override(dahu, {"slow_state": "{share: 0.8, length_s: 4, factor: 175}"})
    assert any("slow_state has share 0.8 and factor 175" in sentence for sentence in implausible(wild))


def test_a_file_has_the_slow_state_and_refuses_nonsense(dahu, tmp_path):
    slow = override(dahu, {"slow_state": SLOW})
    slow.to_yaml(tmp_path / "p.yaml")
    assert load_platform(tmp_path / "p.yaml") == slow
    assert slow.sha256 != dahu.sha256
    assert override(slow, {"slow_state": "null"}).sha256 == dahu.sha256
    assert override(slow, {"slow_state.share": "0.5"}).slow_state.share == 0.5
    for field, value in (("share", 1), ("share", 0), ("factor", 1), ("length_s", 0), ("least_busy_cores", 33)):
        with pytest.raises((InputError, PlatformError), match=f"slow_state.{field}"):
            override(slow, {f"slow_state.{field}": str(value)})


def test_studies_take_undisturbed_runs_and_plans_of_capacity_any(dahu, tmp_path: Path):
    override(dahu, {"slow_state": "{share: 0.5, length_s: 4, factor: 100}"}).to_yaml(tmp_path / "slow.yaml")
    (tmp_path / "parts.yaml").write_text("parts: {usual: {kind: node, price: 1, watts: 100}}\n", encoding="utf-8")
    application = {"name": "hpl", "n": 500, "nb": 64, "grid": "2x2"}

    def asked(question: str, platform: str = "slow.yaml", **base: str):
        section = {
            "whatif": {"factors": {"nb": {"path": "application.nb", "levels": [64, 96]}}},
            "capacity": {"capacity": {"catalogue": str(tmp_path / "parts.yaml"), "nodes": [1]}},
        }[question]
        name = platform if platform == "dahu" else str(tmp_path / platform)
        base = {"application": application, "platform": name, **base}
        run = run_study({"question": question, "base": base, "runs": 12, **section})
        slower = [time_s for time_s in run.to_frame()["time_s"] if time_s > 20.0 * min(run.to_frame()["time_s"])]
        return len(slower), [caveat for caveat in run.caveats if "slow state" in caveat]

    for question, base, slow, said in (
        ("whatif", {}, False, "undisturbed"),
        ("whatif", {"state": "any"}, True, "any run"),
        ("capacity", {}, True, "any run"),
        ("capacity", {"state": "undisturbed"}, False, "undisturbed"),
    ):
        count, caveats = asked(question, **base)
        assert (count > 0) == slow
        assert len(caveats) == 1
        assert said in caveats[0]
    assert asked("capacity", "dahu") == (0, [])
    assert asked("whatif", "dahu", state="any")[1] == ["the platform has no slow state: any run is an undisturbed one"]


@pytest.mark.slow
def test_verify_counts_undisturbed_runs_and_says_how_many_are_not(dahu):
    slow = override(dahu, {"slow_state": SLOW})
    cases = [Case(hpl, predict(hpl, slow, runs=8), 0.0) for hpl in (Hpl(n=500), Hpl(n=1000))]
    line = slow_state_line(cases)
    assert line.startswith(f"Intervals are of undisturbed runs. {cases[1].label}: about one run in 12 meets")
    assert slow_state_line([Case(HPL, predict(HPL, dahu, runs=2), 0.0)]) == ""


def test_a_node_of_fewer_busy_cores_is_never_slow_and_a_run_without_a_slow_state_says_so(dahu):
    slow = override(dahu, {"slow_state": "{share: 0.5, length_s: 4, factor: 2, least_busy_cores: 4}"})
    idle, busy = predict(Hpl(n=500, p=1, q=2), slow, runs=4), predict(Hpl(n=500, p=2, q=2), slow, runs=4)
    assert idle.any.time_s == idle.time_s
    assert slow_state_sentence(idle) == ""
    assert busy.any.share_of_runs > 0.4
    found = predict(Hpl(n=500), dahu, runs=2, state="any")
    assert "the platform has no slow state: any run is an undisturbed one" in found.warnings
    assert found.time_s == predict(Hpl(n=500), dahu, runs=2).time_s
    with pytest.raises(InputError, match="it is undisturbed or any"):
        predict(Hpl(n=500), dahu, runs=2, state="slow")


POWER = Power(idle_W=100.0, computing_W=300.0, communicating_W=200.0)
# A message takes half a second whatever its size; each call of dgemv takes 1 s, each of dtrsv 2 s, all else nothing.
TINY = Path(__file__).parents[1].joinpath("data", "texts", "energy.yaml").read_text()
WITH_POWER = TINY + "power: {{idle_W: 100, computing_W: 300, communicating_W: 200}}\n"


def tiny(cores, text=WITH_POWER):
    return parse_platform(text.format(cores=cores))


@pytest.mark.parametrize(
    ("computing_core_s", "communicating_core_s", "expected_j"),
    [
        (0.0, 0.0, 2 * 10 * 100.0),  # two idle nodes for 10 s
        (80.0, 0.0, 2 * 10 * 300.0),  # all 2 x 4 cores compute all the time
        (0.0, 80.0, 2 * 10 * 200.0),  # all communicate
        (40.0, 0.0, 2 * 10 * 200.0),  # half of them compute: halfway between idle and computing
        (40.0, 40.0, 2 * 10 * 250.0),  # half and half
    ],
)
def test_power_is_linear_in_the_busy_cores(computing_core_s, communicating_core_s, expected_j):
    joules = POWER.energy_j(
        4, time_s=10.0, nodes=2, computing_core_s=computing_core_s, communicating_core_s=communicating_core_s
    )
    assert joules == pytest.approx(expected_j, rel=1e-12)


# Two ranks with 3 and 2 cells of 1 s, two iterations of two messages of 0.5 s each. Both compute from 1 s on; rank 0
# ends at 4 s, and rank 1, which waits for it, has its first message at 4.5 s and answers: rank 0 computes from 5 s to
# the end at 8 s. The cores compute 10 s in all and spend the other 2 * 8 - 10 = 6 s communicating. A computing core
# draws (300 - 100) / cores watts more than an idle one, a communicating core (200 - 100) / cores.
@pytest.mark.parametrize(
    ("cores", "expected_j"),
    [
        (4, 8 * 100 + 10 * 50 + 6 * 25),  # both ranks on one node of four cores
        (2, 8 * 100 + 10 * 100 + 6 * 50),  # on one node of two
        (1, 2 * 8 * 100 + 10 * 200 + 6 * 100),  # on two nodes of one
    ],
)
def test_energy_of_a_stencil_is_that_of_a_hand_calculation(cores, expected_j):
    stencil = Stencil(cells=(5, 1, 1), grid=(2, 1, 1), iterations=2, allreduce="none", cell_time_s=1.0)
    prediction = predict(stencil, tiny(cores), runs=2)
    assert prediction.time_s.mean == pytest.approx(8.0, rel=1e-9)
    assert prediction.energy_j.mean == pytest.approx(expected_j, rel=1e-9)
    assert prediction.energy_j.low == pytest.approx(expected_j, rel=1e-9)  # nothing varies on this platform


# One rank, one block of four columns: a Crout leaf calls dgemv once for the first column, twice for the second and the
# third and not for the last, 1 s each; the solve is one dtrsv of 2 s. One of four cores computes for 7 s: 150 W.
def test_energy_of_hpl_is_that_of_a_hand_calculation_with_communication_and_with_threads():
    prediction = predict(Hpl(n=4, nb=4, nbmin=4), tiny(4), runs=1)
    assert prediction.kernel_time_s == {"dgemv": pytest.approx(5.0), "dtrsv": pytest.approx(2.0)}
    assert prediction.time_s.mean == pytest.approx(7.0, rel=1e-9)
    assert prediction.energy_j.mean == pytest.approx(7.0 * (100 + 200 / 4), rel=1e-9)
    assert not prediction.energy_j.has_interval  # one run has none
    prediction = predict(Hpl(n=16, nb=4, p=2, q=2), tiny(2), runs=1)
    computing_s = sum(prediction.kernel_time_s.values())
    time_s = prediction.time_s.mean
    communicating_s = 4 * time_s - computing_s
    assert communicating_s > 0.5  # there are messages
    expected_j = 2 * 100 * time_s + 100 * computing_s + 50 * communicating_s
    assert prediction.energy_j.mean == pytest.approx(expected_j, rel=1e-9)
    text = TINY.replace("kernel: dgemv", "kernel: dgemv, threads: 2").replace(
        "kernel: dtrsv", "kernel: dtrsv, threads: 2"
    )
    platform = tiny(4, text + "power: {{idle_W: 100, computing_W: 300, communicating_W: 200}}\n")
    prediction = predict(Hpl(n=4, nb=4, threads_per_rank=2), platform, runs=1)
    assert prediction.energy_j.mean == pytest.approx(prediction.time_s.mean * (100 + 2 * 200 / 4), rel=1e-9)


def test_the_command_prints_joules_and_average_watts(tmp_path, output_of, json_of):
    path = tmp_path / "tiny.yaml"
    path.write_text(WITH_POWER.format(cores=4), encoding="utf-8")
    result = json_of("predict", "hpl", "-p", path, "--n", "4", "--nb", "4", "--json")
    assert set(result["energy_j"]) == {"mean", "low", "high"}
    assert result["energy_j"]["mean"] == pytest.approx(150 * result["time_s"]["mean"])
    assert "150.0 W on average" in output_of("predict", "hpl", "-p", path, "--n", "4", "--nb", "4")
