"""The map of a watch's front page, its answer, and which coefficient of a model moved."""

import datetime as dt
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas
import pytest

from lepaute.watch.changelog import Inventory
from lepaute.watch.changelog_edits import record_inventory
from lepaute.watch.factors.dgemm import MODEL_FACTORS
from lepaute.watch.report.factor_history import COLOURS
from lepaute.watch.report.summary import Change, Regression
from lepaute.watch.site.front import cost_text
from lepaute.watch.site.states import STATES, StateMap, drawn
from lepaute.watch.site.write import write_site
from lepaute.watch.store import open_store

DAY_S = 86_400.0
FIRST_S = 1_700_006_400.0  # 00:00 UTC
RATE, POWER = "dgemm_rate_flops", "cpu_power_W"


def table(nodes: int, days: int, factors: tuple[str, ...] = (RATE, POWER), seed: int = 7) -> pandas.DataFrame:
    """A job a day of each node, independent noise of a thousandth."""
    index = pandas.MultiIndex.from_product([range(1, nodes + 1), range(days), factors], names=["node", "day", "factor"])
    frame = index.to_frame(index=False)
    noise = np.random.default_rng(seed).normal(0.0, 1e-3, len(frame))
    return frame.assign(
        cluster="c", cpu=-1, job=frame["day"].astype(str), started_s=FIRST_S + DAY_S * frame["day"], stratum="s",
        value=100.0 * (1.0 + noise), state="done", archive="", node="n" + frame["node"].astype(str),
    )  # fmt: skip


def cells(page: str) -> dict[str, list[str]]:
    """Node -> the state of each of its cells."""
    strips = re.findall(r'<a href="node-[^"]*" title="[^"]*"><b>([^<]*)</b>(.*?)</a>', page, re.DOTALL)
    return {name: re.findall(r'<i(?: class="(\w+)")?>', rest) for name, rest in strips}


def test_each_node_and_factor_is_in_the_state_of_its_last_values(tmp_path: Path) -> None:
    values = table(12, 40)
    day, node, rate = values["day"], values["node"], values["factor"] == RATE
    values.loc[(node == "n2") & rate & (day >= 25), "value"] *= 0.95  # 50 deviations
    values.loc[(node == "n6") & rate & (day == 39), "value"] *= 1.02
    failed = (node == "n5") & (day >= 38)
    values.loc[failed, "state"], values.loc[failed, "value"] = "failed", np.nan
    silent = (node == "n3") & (day >= 30)
    lost = (node == "n4") & ~rate & (day >= 20)  # it reports, but no longer its power
    young = (node == "n12") & (day < 39)
    with open_store(tmp_path / "store") as store:
        store.add_values(values[~(silent | lost | young)].drop(columns="day"))
        write_site(store, tmp_path / "site", FIRST_S + 40 * DAY_S)
    page = (tmp_path / "site" / "index.html").read_text()
    found = cells(page)
    assert list(found) == [f"n{number}" for number in range(1, 13)]
    factors = [POWER, RATE]
    assert (
        re.findall(r'<a href="factor-[^"]*">([^<]*)</a>', page.split('<div class="names">')[1].split("</div>")[0])
        == factors
    )
    state = {name: dict(zip(factors, states, strict=True)) for name, states in found.items()}
    assert state["n2"] == {POWER: "fine", RATE: "changed"}
    assert state["n3"] == {POWER: "silent", RATE: "silent"}
    assert state["n4"] == {POWER: "silent", RATE: "fine"}
    assert state["n5"] == {POWER: "failed", RATE: "failed"}
    assert state["n6"] == {POWER: "fine", RATE: "unconfirmed"}
    assert state["n12"] == {POWER: "unknown", RATE: "unknown"}  # one job: not known, so not fine
    assert all(state[f"n{number}"] == {POWER: "fine", RATE: "fine"} for number in (1, 7, 8, 9, 10, 11))
    assert f"{POWER} of c n4: no value since" in page
    assert "1 open regression on 12 nodes, last data" in page
    assert re.search(r'aria-label="-(4.9|5.0|5.1) % since .*?d="M.*?d="M.*?d="M.*?<strong>-', page), "its picture"
    nodes = (tmp_path / "site" / "nodes.html").read_text()
    assert re.findall(r">(n\d+)</a>", nodes)[:5] == ["n2", "n5", "n3", "n4", "n6"], "the worst first"
    assert "1 changed, 1 failed, 2 silent, 1 not confirmed, 1 unknown" in page


@pytest.mark.parametrize(
    ("factor", "size", "longer", "lost"),
    [(RATE, -0.2, "25.00 %", "0.40 of 2 CPUs"), ("copy_s", 0.25, "25.00 %", "0.40 of 2 CPUs")],
)
def test_the_cost_of_a_regression_is_the_time_that_work_takes_longer(
    factor: str, size: float, longer: str, lost: str
) -> None:
    ends = sorted((size * 0.99, size * 1.01))
    hot = Change("cpu_degC", 1, 0.4, 0.39, 0.41, 2)
    report = Regression(
        "c", (("c", "n1", 0), ("c", "n1", 1)), dt.date(2026, 3, 1), dt.date(2026, 3, 2),
        (hot, Change(factor, int(np.sign(size)), size, ends[0], ends[1], 2)), (),
    )  # fmt: skip
    text = cost_text(report, 24, dt.date(2026, 3, 10))
    assert f"takes {longer} (95 %:" in text
    assert f"{lost} are lost, 4.0 CPU-days so far" in text  # ten days of 0.4
    heat = Regression("c", report.machines, report.since, report.alarm, (hot,), ())
    assert "costs nothing that is known" in cost_text(heat, 24, dt.date(2026, 3, 10))


def test_nodes_stand_by_rack_where_the_inventory_knows_racks(tmp_path: Path) -> None:
    racks = {f"n{number}": f"r{1 + number // 4}" for number in range(1, 9)}
    chassis = {name: f"{rack}{at % 2}" for at, (name, rack) in enumerate(racks.items())}
    with open_store(tmp_path / "store") as store:
        store.add_values(table(9, 12).drop(columns="day"))
        record_inventory(store, Inventory({"rack": racks, "chassis": chassis}), "jane")
        write_site(store, tmp_path / "site", FIRST_S + 13 * DAY_S)
    page = (tmp_path / "site" / "index.html").read_text()
    assert re.findall("<h3>([^<]*)</h3>", page) == ["rack r1", "rack r2", "rack r3", "no rack known"]
    assert list(cells(page)) == [f"n{number}" for number in range(1, 10)]


def test_a_map_of_five_thousand_nodes_stays_small() -> None:
    nodes = [f"n{number}" for number in range(5000)]
    rng = np.random.default_rng(3)
    of_node = {name: ["fine" if chance < 0.98 else "silent" for chance in rng.random(8)] for name in nodes}
    made = drawn(
        StateMap([(f"f{at}", "p") for at in range(8)], of_node), 0, "c", dict.fromkeys(nodes, "p"), Inventory()
    )
    assert made["size"] == "small"
    assert len(made["styles"]) < 60  # strips that look alike share one
    assert sum(count for _, _, count in made["counts"]) == 5000


# What eyes without red or green receptors make of linear RGB (Machado, Oliveira and Fernandes 2009, full severity).
PROTANOPIA = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("vision", [np.eye(3), PROTANOPIA, DEUTERANOPIA], ids=["all", "no red", "no green"])
def test_every_two_states_can_be_told_apart_by_all_eyes(vision: tuple[tuple[float, ...], ...], scheme: int) -> None:
    colours = {state: COLOURS[state][scheme] for state in STATES}
    linear = {
        name: np.array([int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]) ** 2.2 for name, text in colours.items()
    }
    seen = {name: np.clip(np.array(vision) @ colour, 0, 1) ** (1 / 2.2) for name, colour in linear.items()}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 0.15, (one, other)


# ---- models ----------------------------------------------------------------------------------------------------------


def test_the_page_of_a_model_has_its_name_and_says_which_coefficient_moved(tmp_path: Path) -> None:
    values = table(6, 40, MODEL_FACTORS)
    moved = (values["node"] == "n3") & (values["factor"] == "dgemm_mk_s") & (values["day"] >= 33)
    values.loc[moved, "value"] *= 1.03
    with open_store(tmp_path / "store") as store:
        store.add_values(values.drop(columns="day"))
        write_site(store, tmp_path / "site", FIRST_S + 41 * DAY_S)
    (path,) = (tmp_path / "site").glob("factor-c-dgemm-mnk-s-dgemm-*.html")
    page = path.read_text()
    assert "<h1>c: dgemm model, 8 coefficients</h1>" in page
    assert re.search(
        r"n3</a></td>.*?<td class=\"words\">dgemm_mk_s \+(2\.9|3\.0|3\.1) %; the other 7 are as before \(p = [^<]*\)<",
        page,
    )
    front = (tmp_path / "site" / "index.html").read_text()
    assert "8 coefficients of the models" in front
    assert " & " not in re.sub("<[^>]*>", "", front)
    assert [len(states) for states in cells(front).values()] == [1] * 6  # the model stands for its coefficients
    assert cells(front)["n3"] != ["fine"]
