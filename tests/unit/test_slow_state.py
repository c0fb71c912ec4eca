"""The slow state of a machine: its draws against a slow twin, and what predictions, studies and plans make of it."""

import random
from math import sqrt
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.errors import InputError, PlatformError
from lepaute.measure.verify.campaign import Case
from lepaute.measure.verify.report import slow_state_line
from lepaute.simulate import Hpl, difference, predict, read_prediction
from lepaute.simulate.platform import dump_platform, load_platform, override
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
    dump_platform(override(dahu, {"slow_state": SLOW}), tmp_path / "p.yaml")
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
    dump_platform(slow, tmp_path / "p.yaml")
    assert load_platform(tmp_path / "p.yaml") == slow
    assert slow.sha256 != dahu.sha256
    assert override(slow, {"slow_state": "null"}).sha256 == dahu.sha256
    assert override(slow, {"slow_state.share": "0.5"}).slow_state.share == 0.5
    for field, value in (("share", 1), ("share", 0), ("factor", 1), ("length_s", 0), ("least_busy_cores", 33)):
        with pytest.raises((InputError, PlatformError), match=f"slow_state.{field}"):
            override(slow, {f"slow_state.{field}": str(value)})


def test_studies_take_undisturbed_runs_and_plans_of_capacity_any(dahu, tmp_path: Path):
    dump_platform(override(dahu, {"slow_state": "{share: 0.5, length_s: 4, factor: 100}"}), tmp_path / "slow.yaml")
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


def test_a_node_of_fewer_busy_cores_is_never_slow(dahu):
    slow = override(dahu, {"slow_state": "{share: 0.5, length_s: 4, factor: 2, least_busy_cores: 4}"})
    idle, busy = predict(Hpl(n=500, p=1, q=2), slow, runs=4), predict(Hpl(n=500, p=2, q=2), slow, runs=4)
    assert idle.any.time_s == idle.time_s
    assert slow_state_sentence(idle) == ""
    assert busy.any.share_of_runs > 0.4


def test_any_run_without_a_slow_state_is_an_undisturbed_one_and_says_so(dahu):
    found = predict(Hpl(n=500), dahu, runs=2, state="any")
    assert "the platform has no slow state: any run is an undisturbed one" in found.warnings
    assert found.time_s == predict(Hpl(n=500), dahu, runs=2).time_s
    with pytest.raises(InputError, match="it is undisturbed or any"):
        predict(Hpl(n=500), dahu, runs=2, state="slow")
