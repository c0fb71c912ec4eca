"""Commands that state one fact state the same figure, in as many digits, and one trust."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from effects.lines import all_lines
from hostile.cases import BASES, Case, _words, commands
from long_tests import long_but

from lepaute.cli.main import main
from lepaute.simulate import Hpl, PredictionRequest, predict_all
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.data_sheet import DataSheet, platform_from
from lepaute.simulate.prediction.sweep import Sweep

SMALL = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"
N, RUNS = 3000, 5
#: Configurations: on Dahu one of a block size far below the calibrated ones, of narrow panels, and usual ones.
CASES: dict[str, list[dict[str, Any]]] = {
    "dahu": [
        {"nb": 32, "grid": "2x4"}, {"nb": 192, "grid": "1x8"}, {"nb": 192, "grid": "2x4"}, {"nb": 256, "grid": "2x4"},
    ],
    "data sheet": [{"nb": 64, "grid": "2x4"}, {"nb": 128, "grid": "2x4"}, {"nb": 128, "grid": "8x1"}],
    "calibrated": [{"nb": 64, "grid": "2x2"}, {"nb": 128, "grid": "2x2"}, {"nb": 128, "grid": "1x4"}],
}  # fmt: skip


@pytest.fixture
def platform(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    if request.param == "dahu":
        return "dahu"
    if request.param == "calibrated":
        return str(SMALL)
    sheet = DataSheet(1, 2, 4, dgemm_flops=45e9, link_Bps=12.5e9)
    platform_from(sheet, load_platform("dahu")).to_yaml("sheet.yaml")
    return "sheet.yaml"


def words_of(platform: str, case: dict[str, Any]) -> list[str]:
    words = [word for name, value in case.items() for word in (f"--{name}", str(value))]
    return ["predict", "hpl", "-p", platform, "--n", str(N), *words, "--runs", str(RUNS), "--json"]


def study(question: str, platform: str, cases: list[dict[str, Any]], **more: Any) -> str:
    """The cases as scenarios; the first is the base."""
    fields = [{f"application.{name}": value for name, value in case.items()} for case in cases]
    content = {
        "question": question,
        "base": {"application": {"name": "hpl", "n": N, **cases[0]}, "platform": platform},
        "scenarios": {f"case {at}": each for at, each in enumerate(fields)},
        "runs": RUNS,
        **more,
    }
    Path(f"{question}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return f"{question}.yaml"


def without_counts(caveats: list[str]) -> set[str]:
    """What the caveats are about: their beginnings, without figures and names of kernels."""
    heads = [re.sub(r"of \S+ time", "of its time", caveat.partition(":")[0]) for caveat in caveats]
    return {" ".join(word for word in head.split() if word.isalpha()) for head in heads}


@pytest.mark.slow
@pytest.mark.parametrize("platform", CASES, indirect=True)
def test_all_commands_say_the_same_of_a_run(platform, request, json_of):
    cases = CASES[request.node.callspec.params["platform"]]
    alone = [json_of(*words_of(platform, case)) for case in cases]
    whatif = json_of("study", "whatif", study("whatif", platform, cases), "--json")
    tuned = json_of("study", "tune", study("tune", platform, cases, budget={"simulations": 12 * len(cases)}), "--json")

    # comparable, and why not
    trusts = [one["trust"] for one in alone]
    assert [one["comparable"] for one in alone] == [trust["comparable"] for trust in trusts]
    in_whatif = [whatif["comparisons"][0]["reference"], *(each["other"] for each in whatif["comparisons"])]
    for side, trust in zip(in_whatif, trusts, strict=True):
        assert side["trust"] == trust
    of_tune = {one["point"]["scenario"]: one for one in tuned["standings"]}
    judged = {f"case {at}": trust for at, trust in enumerate(trusts)}
    for name, one in of_tune.items():
        if one["trust"]["extrapolation_relative_sd"] is not None:  # those that come last are not judged
            assert one["trust"] == judged[name]
    assert [each["comparable"] for each in whatif["comparisons"]] == [
        trusts[0]["comparable"] and trust["comparable"] for trust in trusts[1:]
    ]

    # the best: never what is not comparable where something is, and the same for a sweep and for tuning
    best = of_tune[tuned["best"]["scenario"]]
    assert best["comparable"] or not any(trust["comparable"] for trust in trusts)
    grids = [[int(part) for part in case["grid"].split("x")] for case in cases]
    runs_of = [Hpl(n=N, nb=case["nb"], p=p, q=q) for case, (p, q) in zip(cases, grids, strict=True)]
    sweep = Sweep(tuple(predict_all(runs_of, platform, PredictionRequest(runs=RUNS))))
    assert [prediction.trust.to_dict() for prediction in sweep.predictions] == trusts
    assert [prediction.time_s.to_dict() for prediction in sweep.predictions] == [one["time_s"] for one in alone]
    near = {one["point"]["scenario"] for one in tuned["standings"] if one["near_best"]}
    bests = [f"case {at}" for at, one in enumerate(sweep.predictions) if any(one is each for each in sweep.bests)]
    assert tuned["best"]["scenario"] in bests
    assert f"case {sweep.predictions.index(sweep.bests[0])}" in near

    # caveats: what predict warns of, each study does
    warned = {sentence for one in alone for sentence in without_counts(one["warnings"])}
    warned = {sentence for sentence in warned if not sentence.startswith("not comparable")}
    for answer in (whatif, tuned):
        assert warned <= without_counts(answer["caveats"])
        assert any(each.startswith("not comparable") for each in answer["caveats"]) == any(
            not one["comparable"] for one in (in_whatif if answer is whatif else of_tune.values())
        )


@pytest.mark.slow
@pytest.mark.parametrize("platform", CASES, indirect=True)
def test_sensitivity_and_capacity_have_the_caveats_of_the_runs_that_they_rest_on(platform, request, json_of):
    first, last = CASES[request.node.callspec.params["platform"]][:3:2]
    sizes, grid = [first["nb"], last["nb"]], first["grid"]
    alone = [json_of(*words_of(platform, {"nb": nb, "grid": grid})) for nb in sizes]
    warned = [without_counts(one["warnings"]) for one in alone]
    factors = {"nb": {"path": "application.nb", "levels": sizes}}
    base = {"application": {"name": "hpl", "n": N, "grid": grid, "nb": sizes[0]}, "platform": platform}
    effects = {"question": "sensitivity", "base": base, "factors": factors, "runs": RUNS}
    p, q = map(int, grid.split("x"))
    nodes = load_platform(platform).nodes.count if platform == str(SMALL) else 1
    parts = {"node": {"kind": "node", "price": 9000, "watts": 400, "ranks": p * q // nodes}}
    machines = {
        "question": "capacity", "base": base, "capacity": {"catalogue": "parts.yaml", "nodes": [nodes]}, "runs": RUNS,
    }  # fmt: skip
    Path("parts.yaml").write_text(yaml.safe_dump({"parts": parts}))
    for content, expected in ((effects, warned[0] | warned[1]), (machines, warned[0])):
        question = str(content["question"])
        Path(f"{question}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        answer = json_of("study", question, f"{question}.yaml", "--json")
        known = {sentence for sentence in expected if not sentence.startswith("not comparable")}
        assert known <= without_counts(answer["caveats"]), question
        assert any(each.startswith("not comparable") for each in answer["caveats"]) == any(
            not one["comparable"] for one in (alone if content is effects else alone[:1])
        ), question


EXPERIMENT = """\
import lepaute as lp


class Nothing(lp.Job):
    monitor_period_s = 0.0
    reference_period_s = 0.0

    def design(self):
        return lp.design.full_factorial({"x": [1, 2, 3]}, seed=self.seed)

    def run(self):
        for row in self.rows():
            self.record(y=1.0)
"""


def first_line(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    capsys.readouterr()
    assert main(list(argv)) == 0
    return capsys.readouterr().out.splitlines()[0]


def test_a_design_that_is_written_and_one_that_is_shown_have_one_sentence(tmp_path, monkeypatch, capsys, json_of):
    monkeypatch.chdir(tmp_path)
    factors = ("-f", "a=1,2,3", "-f", "b=x,y", "--replications", "4")
    for more in ((), ("--blocks", "5")):
        written = first_line(capsys, "design", "factorial", *factors, *more, "-o", "d.csv", "--force")
        assert written == first_line(capsys, "design", "show", "d.csv")
        rows, treatments, times = map(int, re.findall(r"[0-9]+", written)[:3])
        told = json_of("design", "show", "d.csv", "--json")
        assert (rows, treatments, [times, times]) == (told["rows"], told["treatments"], told["replications"])


def test_a_platform_that_is_written_is_the_one_that_is_shown_and_checked(tmp_path, monkeypatch, capsys, output_of):
    monkeypatch.chdir(tmp_path)
    sheet = "--nodes 4 --cores 2x8 --dgemm 30G --link 100Gb --latency 1.5us -o p.yaml".split()
    made = first_line(capsys, "platform", "new", *sheet)
    checked = first_line(capsys, "platform", "check", "p.yaml")
    drawn = first_line(capsys, "platform", "synthesize", "--nodes", "3", "--like", "dahu", "-o", "s.yaml")
    for file, said in (("p.yaml", made), ("p.yaml", checked), ("s.yaml", drawn)):
        assert said.endswith(f"platform {first_line(capsys, 'platform', 'show', file)}"), said
    # the latency that was given is the time of a short message
    assert "between nodes  1.50 µs for a short message, " in output_of("platform", "show", "p.yaml")


@pytest.mark.slow
@pytest.mark.nodes
def test_a_run_its_archive_and_its_verification_count_the_same(tmp_path, monkeypatch, capsys, json_of):
    monkeypatch.chdir(tmp_path)
    Path("nothing.py").write_text(EXPERIMENT)
    ended = first_line(capsys, "run", "nothing.py", "-o", "x.zip", "-q")
    assert ended == "x.zip: complete, 3 of 3 rows measured"
    shown = first_line(capsys, "archive", "show", "x.zip")
    assert shown.startswith("COMPLETE: experiment Nothing, 3 of 3 rows measured on 1 node, ")
    told = json_of("archive", "show", "x.zip", "--json")
    verified = first_line(capsys, "archive", "verify", "x.zip")
    assert verified == f"x.zip: intact, {len(told['members'])} members, id {told['id'][:12]}"
    extracted = first_line(capsys, "archive", "extract", "x.zip", "-o", "files")
    assert extracted.startswith(f"files: {len(told['members']) + 1} files of x.zip, ")  # and the manifest


_NUMBER = r"[+-]?(?:\d[\d,]*)(?:\.\d+)?(?:e[+-]\d+)?"
#: A value and its interval: 54.9 s (95 %: 53.0 to 57.0 s)
_INTERVAL = re.compile(
    rf"({_NUMBER})(?: (?!to\b)[^\s(]+)? \((?:95 %: )?({_NUMBER})(?! %:)(?: [^\s)]+)?(?: \w+)? to ({_NUMBER})"
)
_FIGURE = re.compile(rf"(?<![\w.=/:-]){_NUMBER}(?![\w/:=-]|\.\w)")
_TIME = re.compile(rf"{_NUMBER} (ns|µs|ms|s|min|h)")
#: Command lines that print coefficients, whose powers of ten are the field's, and others that copy what was measured.
_EXPONENTS = ("platform", "fit", "archive", "segment --objective")
#: At each change; the others in long tests.
QUICK = ("segment", "trace breakdown", "trace compare", "watch test", "platform show")


def decimals(number: str) -> tuple[int, str]:
    mantissa, _, power = number.partition("e")
    return len(mantissa.partition(".")[2]), power


def faults(text: str, *, exponents: bool = False) -> list[str]:
    """What is wrong with the figures of an answer; lines in HPL's own form are its programs'."""
    found = []
    text = "\n".join(line for line in text.splitlines() if not re.match("W[RC][0-9]{2}", line))
    for match in _INTERVAL.finditer(text):
        level = match[1].isdigit() and match[0].startswith(f"{match[1]} (")  # cpu 0, size 64: of which it is
        if not level and len({decimals(number) for number in match.groups()}) > 1:
            found.append(f"value and interval differ in their digits: {match[0]}")
        if not match[1].strip("0.+-") and not match[2].strip("0.+-") and match[3].strip("0.+-"):
            found.append(f"no answer, but a figure: {match[0]}")
    for figure in _FIGURE.findall(text):
        digits = re.sub(r"[^0-9]", "", figure.partition("e")[0]).lstrip("0")
        if "." in figure and len(digits) > 6:
            found.append(f"more than six digits: {figure}")
        if "e" in figure and not exponents:
            found.append(f"an exponent: {figure}")
    rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    for above, below in zip(rows, rows[1:], strict=False):
        if len(above) == len(below) > 1:
            for one, other in zip(above, below, strict=True):
                units = [unit[1] if (unit := _TIME.fullmatch(cell)) else "" for cell in (one, other)]
                if all(units) and units[0] != units[1]:
                    found.append(f"two units in a column: {one}, {other}")
    return found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("0.123 s (95 %: 0.1 to 0.2 s)", "value and interval differ"),
        ("0.0 ms (95 %: 0.0 to 3.2 ms)", "no answer"),
        ("it takes 0.00000000000000332123 s or 1.234567 s", "more than six digits"),
        ("3.32e-15 ns", "an exponent"),
        ("bcast  12 µs  a\ngather  1.20 ms  b", "two units"),
        ("54.9 s (95 %: 53.0 to 57.0 s), 1.50 of 2026-11-29 10:12:13.123456\n1.2 ms  3\n1.3 ms  4", ""),
    ],
)
def test_faults_are_seen(text: str, fault: str) -> None:
    seen = faults(text)
    assert any(each.startswith(fault) for each in seen) if fault else not seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", long_but(sorted(BASES), *(name for name in sorted(BASES) if name.startswith(QUICK)))
)
def test_each_figure_has_the_digits_that_are_known(command, server):
    details = any("--details" in parameter.opts for parameter in commands()[command].params)
    more = [{}, {"--details": ""}] if details else [{}]
    cases = [line.case(server.inputs, *added) for line in all_lines() for added in more
             if line.command == command and not line.on_machine]  # fmt: skip
    cases += [Case(command, "", "", _words(command, BASES[command], server.inputs, added)) for added in more]
    found = []
    for case, answer in zip(cases, server.run(cases, "/nowhere"), strict=True):
        words = " ".join(case.words)
        printed = f"{answer['stdout']}\n{answer['stderr']}"
        found += [f"{words}: {fault}" for fault in faults(printed, exponents=words.startswith(_EXPONENTS))]
    assert not found, "\n".join(dict.fromkeys(found))
