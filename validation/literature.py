"""Studies of the literature through the command line, each held against the published figures that its file carries.

Every study is a command that stands at the head of its file in examples/literature, and is run as such:

    lepaute study whatif examples/literature/NAME.yaml -o DIR/NAME

The script reads answer.json alone. Nothing but a clone is needed: the clusters of 256 nodes are drawn from the
published population (dahu-nodes.yaml), so they are others than the published ones. --full adds Stampede's run at its
full size (eleven minutes on two idle cores; without it, a sixteenth of it is taken apart). --answers: answers that are
in the folder are taken, the others added. Fixed before they were run (docs/design/decisions/studies.md):

* published effects of 2 % or more have our sign, and none is more than 5 points from ours (what_if/runs.py);
* capacity planning (master's thesis, section 5.2): factors within BANDS, wide since the thesis does not say NB and the
  grid; the platform is that of the notebook which it names as its record. Random mapping at 10 Gbit/s: never judged;
* rates of whole machines: inside our 95 % interval. Theta: the data sheet below, 8 runs, chosen before the first one.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pandas
from support.real_runs import LEPAUTE
from support.report import ROOT, Goal, Options, at_most, run_study, say
from what_if.runs import EFFECT_LIMIT_POINTS, RESOLUTION_PERCENT

FILES = ROOT / "examples" / "literature"
EFFECTS = ("temporal-variability", "topology", "evicted-nodes", "evicted-slow-nodes")
CAPACITY = ("capacity-components", "capacity-switches", "capacity-mapping")
#: Without published figures of the same thing: the other rule of cables, and what the drafts leave open.
SHOWN = ("topology-all-cables", "spatial-variability", "stampede-sixteenth")
SHORT = ("capacity-mapping", "stampede-sixteenth")
#: (level, n or bandwidth) -> least and most of the time over that of the base.
BANDS: dict[tuple[str, str, float], tuple[float, float]] = {
    ("capacity-components", "speed x 10", 100_000): (1 / 7, 1 / 3),
    ("capacity-components", "speed / 10", 100_000): (7.0, 10.0),
    ("capacity-components", "latency / 10", 50_000): (1 / 2.2, 1 / 1.1),
    ("capacity-components", "latency x 10", 50_000): (2.2, 6.0),
    **{
        ("capacity-components", f"bandwidth {by}", n): (1 / 1.15, 1.15)
        for by in ("x 10", "/ 10")
        for n in (50_000, 100_000)
    },
    ("capacity-switches", "1 top switch", 0.001): (2.0, 4.5),
    ("capacity-switches", "1 top switch", 1): (0.0, 1.15),
    ("capacity-mapping", "random", 0.001): (1.2, 3.2),
}
#: Theta, from its data sheet, and its run (thesis, table 2.1; its 28 h are not those of this N and rate, 18.4 h).
THETA = (
    "platform new --nodes 3616 --cores 64 --peak 41.6G --simd avx512 --clock base --blas mkl --link 10.2GB "
    "--latency 3us --threads-per-rank 64 --memory 192G"
)
THETA_RUN = (
    "predict hpl --n 8360352 --nb 336 --grid 32x101 --bcast 2ring-modified --depth 0 --swap binary-exchange "
    "--rfact left --threads-per-rank 64 --fidelity sampled --runs 8"
)
STAMPEDE_RUN = (
    "predict hpl -p stampede-like --n 3875000 --nb 1024 --grid 77x78 --bcast long-modified --depth 0 "
    "--swap binary-exchange --pfact right --rfact crout --nbmin 4 --ndiv 2 --pmap column --l1 no-transposed "
    "--u no-transposed --equil 0 --fidelity sampled --runs 8"
)
RATES = {"theta": 5884.6e3, "stampede": 5168.11e3}
TEXT = """## Studies of the literature by one command each

Ours beside the published figures, by the command line on a clone alone (`validation/literature.py`); [what each
is](literature.md#studies-by-one-command-each).

{goals}

{cases}
"""

OWN = {"--only": {"choices": [*EFFECTS, *CAPACITY, *SHOWN, *RATES], "help": "one of the studies"}}


def lepaute(words: list[str], folder: Path) -> str:
    """What the command prints; ends the script where it fails."""
    command = [*LEPAUTE, *words]
    say(f"lepaute {' '.join(words)}")
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=folder).stdout


def answered(options: Options) -> pandas.DataFrame:
    """A row a configuration of every study: ours and the published figure."""
    chosen = SHORT if options.quick else (*EFFECTS, *CAPACITY, *SHOWN, "theta", *(["stampede"] if options.full else []))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        for name in [options.own.only] if options.own.only else chosen:
            if name in RATES:
                rows.append(rate_of(name, folder))
                continue
            lepaute(["study", "whatif", str(FILES / f"{name}.yaml"), "-o", str(folder / name)], folder)
            rows += rows_of(name, json.loads((folder / name / "answer.json").read_text()))
    return pandas.DataFrame(rows)


def rate_of(name: str, folder: Path) -> dict[str, Any]:
    """The row of a whole machine."""
    run = STAMPEDE_RUN.split()
    if name == "theta":
        lepaute([*THETA.split(), "-o", "theta.yaml"], folder)
        run = [*THETA_RUN.split(), "-p", "theta.yaml"]
    rate = json.loads(lepaute([*run, "--json"], folder))["rate_gflops"]
    return {"study": name, "level": "the run", "value": rate["mean"], "low": rate["low"], "high": rate["high"],
            "published_value": RATES[name]}  # fmt: skip


def rows_of(name: str, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an answer; change : of the first response, in per cent."""
    rows = []
    for each in answer["comparisons"]:
        response = next(iter(each["differences"]))
        ratio = each["differences"][response]["ratio"]
        low, high = (ratio.get(end) for end in ("low", "high"))
        rows.append(
            {
                "study": name,
                "setting": ", ".join(f"{key} {value}" for key, value in each["setting"].items()),
                "at": next((v for k, v in each["setting"].items() if k in ("n", "bandwidth")), None),
                "level": str(each["other"]["level"]),
                "response": response,
                "value": each["other"]["means"][response],
                "change": 100.0 * (ratio["mean"] - 1.0),
                "low": None if low is None else 100.0 * (low - 1.0),
                "high": None if high is None else 100.0 * (high - 1.0),
                "published": each.get("published_other", {}).get("change_percent"),
                "runs": answer["runs"],
            }
        )
    return rows


def judged(frame: pandas.DataFrame) -> list[Goal]:
    goals = []
    for name in EFFECTS:
        rows = frame[(frame["study"] == name) & frame["published"].notna()] if "published" in frame else frame[:0]
        if not len(rows):
            continue
        marked = rows[rows["published"].abs() >= RESOLUTION_PERCENT]
        same = int((marked["change"] * marked["published"] > 0.0).sum())
        what = f"{name}: our sign where {RESOLUTION_PERCENT:g} % or more is published"
        goals.append(Goal(what, "all", f"{same} of {len(marked)}", same == len(marked)))
        farthest = float((rows["change"] - rows["published"]).abs().max())
        goals.append(at_most(f"{name}: farthest from the published effect", EFFECT_LIMIT_POINTS, farthest, "points"))
    for (name, level, at), (least, most) in BANDS.items():
        rows = frame[(frame["study"] == name) & (frame["level"] == level) & (frame.get("at") == at)]
        if len(rows):
            ratios, published = 1.0 + rows["change"] / 100.0, 1.0 + rows["published"] / 100.0
            reached = " to ".join(f"{each:.2f}" for each in dict.fromkeys((ratios.min(), ratios.max())))
            known = " to ".join(f"{each:.2f}" for each in dict.fromkeys((published.min(), published.max())))
            met = bool(((least <= ratios) & (ratios <= most)).all())
            goals.append(Goal(f"{name}: {level} at {at:g}, times", f"{least:.2f} to {most:.2f}", reached, met, known))
    for name in RATES:
        for row in frame[frame["study"] == name].itertuples():
            reached = f"{row.value / 1e3:,.0f} ({row.low / 1e3:,.0f} to {row.high / 1e3:,.0f}) Tflop/s"
            met = bool(row.low <= row.published_value <= row.high)
            known = f"{row.published_value / 1e3:,.1f}"
            goals.append(Goal(f"{name}: rate inside our interval", "inside", reached, met, known))
    return goals


if __name__ == "__main__":
    run_study(answered, judged, TEXT, own=OWN, has_subset=True)
