"""Predictions over all options and shipped platforms, pinned to the last bit.

    PYTHONPATH=src:tests .venv/bin/python tests/golden/pinned_predictions.py

writes the file again, with the parameters that differ from the defaults; do so only where results are meant to change,
or an option is new, and say in the changelog why they did.
"""

import contextlib
import io
import json
from pathlib import Path
from typing import Any, get_args

from support_hpl_options import other_words

from lepaute.cli.main import main
from lepaute.simulate import Hpl
from lepaute.simulate.apps.hpl.parameters import Broadcast

FILE = Path(__file__).resolve().parents[1] / "data" / "pinned_predictions.json"
PLATFORMS = (
    *("dahu-2019-04", "dahu-2019-07", "dahu-2019-10", "dahu-2020-01", "dahu-2020-01-loaded"),
    *("exascale-like", "stampede-like"),
)
#: Figures about the simulation itself, which differ from one machine to the next.
NOT_PINNED = ("wall_s", "peak_rss_bytes", "engine_bytes")


def hpl(*options: str, platform: str = "dahu", n: int = 2500, grid: str = "4x5") -> list[str]:
    """A small prediction of HPL: several nodes are not needed for its algorithms to differ."""
    usual = () if "--runs" in options else ("--runs", "2")
    usual += () if "--parts" in options else ("--no-parts",)
    return ["predict", "hpl", "-p", platform, "--n", str(n), "--grid", grid, *usual, *options, "--json"]


def stencil(*options: str, platform: str = "dahu") -> list[str]:
    box = (
        "--cells", "120x96x64", "--grid", "4x4x4", "--iterations", "4", "--cell-time", "2e-9", "--runs", "2",
        "--no-parts",
    )  # fmt: skip
    return ["predict", "stencil", "-p", platform, *box, *options, "--json"]


CASES: dict[str, list[str]] = {
    **{f"platform {name}": hpl(platform=name, n=6000, grid="6x8") for name in PLATFORMS},
    **{f"bcast {code}": hpl("--bcast", str(code)) for code in range(len(get_args(Broadcast)))},
    **{f"bcast {word}, depth 0": hpl("--bcast", word, "--depth", "0") for word in ("1ring", "2ring-modified", "long")},
    **{f"depth {depth}": hpl("--depth", str(depth)) for depth in (0, 2, 5)},
    **{f"swap {word}": hpl("--swap", word) for word in ("spread-roll", "mix")},
    "swap mix, threshold 64": hpl("--swap", "2", "--swap-threshold", "64"),
    "spread-roll without equilibration": hpl("--swap", "spread-roll", "--equil", "0"),
    **{f"pfact {word}": hpl("--pfact", word) for word in ("left", "right")},
    **{f"rfact {word}": hpl("--rfact", word) for word in ("left", "crout")},
    "pfact 2, nbmin 4, ndiv 3": hpl("--pfact", "2", "--nbmin", "4", "--ndiv", "3"),
    **{f"l1 {l1}, u {u}": hpl("--l1", str(l1), "--u", str(u)) for l1 in (0, 1) for u in (0, 1) if l1 or u},
    "column-major": hpl("--pmap", "column", n=5000, grid="8x8"),
    "alignment 64": hpl("--align", "64"),
    **{f"nb {nb}": hpl("--nb", str(nb)) for nb in (50, 256)},
    **{f"grid {grid}": hpl(grid=grid) for grid in ("1x1", "1x7", "7x1", "3x6", "5x4")},
    "random mapping": hpl("--mapping", "random", "--mapping-seed", "7", n=5000, grid="8x8"),
    "seed 41": hpl("--seed", "41"),
    "parts of the interval": hpl("--runs", "10", "--parts", n=1200, grid="2x3"),
    "without days and discrepancies": hpl("--without", "days,discrepancy"),
    "ten runs": hpl("--runs", "10", n=1200, grid="2x3"),
    "order 1": hpl(n=1),
    **{f"{word} on 3 x 7": hpl("--swap", word, "--bcast", "long", grid="3x7") for word in ("spread-roll", "mix")},
    "sampled": hpl("--fidelity", "sampled", "--runs", "3", n=40_000, grid="4x4"),
    "flow factor scale": hpl("--set", "network.flow_factor=scale", n=5000, grid="8x8"),
    "exact sharing": hpl("--set", "network.sharing=exact", n=5000, grid="8x8"),
    "slow links": hpl("--set", "network.node_link.bandwidth_Bps=1e9", n=5000, grid="8x8"),
    "no days": hpl("--set", "days=null"),
    "shared loopback": hpl("--set", "network.loopback.shared=true"),
    "loaded network, long broadcast": hpl(
        "--bcast", "long-modified", platform="dahu-2020-01-loaded", n=5000, grid="8x8"
    ),
    **{
        f"allreduce {word}": stencil("--allreduce", word) for word in ("none", "binomial", "recursive-doubling", "ring")
    },
    "stencil, open box": stencil("--open", "--halo", "2"),
    "stencil, memory and noise": stencil(
        "--cell-bytes", "48", "--node-memory-bandwidth", "1.2e11", "--noise", "0.02", "--allreduce-values", "1000"
    ),
    "stencil, loaded": stencil("--value-bytes", "64", "--seed", "9", platform="dahu-2020-01-loaded"),
    "stencil, scale": stencil("--set", "network.flow_factor=scale"),
}
#: Further options of HPL, but for that of which Dahu has no kernel models.
CASES |= {
    f"{name} {word}": hpl(name, word)
    for name, word in other_words().items()
    if name != "--threads-per-rank" and not any(name in case for case in CASES.values())
}
USUAL = Hpl(n=1).parameters()


def predicted(arguments: list[str]) -> Any:
    """The JSON object that the command prints, without the figures that are not pinned."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as complaints:
        status = main(arguments)
    if status != 0:
        raise AssertionError(f"{' '.join(arguments)}: status {status}, {complaints.getvalue()}")
    prediction = json.loads(printed.getvalue())
    for name in NOT_PINNED:
        prediction["simulation"].pop(name)
    for name in ("answer", "warnings", "version"):  # texts, which may be improved
        del prediction[name]
    if prediction["application"] == "hpl":
        given = prediction["parameters"].items()
        prediction["parameters"] = {name: value for name, value in given if value != USUAL.get(name)}
    return prediction


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(predicted(arguments))}" for name, arguments in CASES.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
