"""The map of a watch's front page, its answer, and which coefficient of a model moved."""

import datetime as dt
import re
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas
import pytest

from lepaute.watch.changelog import Inventory
from lepaute.watch.changelog_edits import record_inventory
from lepaute.watch.factors.dgemm import MODEL_FACTORS, PRODUCT_FACTORS
from lepaute.watch.notices.absences import last_data
from lepaute.watch.open_regressions import open_regressions
from lepaute.watch.report.models import MODELS, models_of, title_of
from lepaute.watch.report.summary import Change, Regression
from lepaute.watch.site.front import answer, cost_text
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
    assert state["n2"] == {POWER: "fine", RATE: "alarm"}
    assert state["n3"] == {POWER: "silent", RATE: "silent"}
    assert state["n4"] == {POWER: "silent", RATE: "fine"}
    assert state["n5"] == {POWER: "failed", RATE: "failed"}
    assert state["n6"] == {POWER: "fine", RATE: "suspicious"}
    assert state["n12"] == {POWER: "unjudged", RATE: "unjudged"}  # one job: not known, so not fine
    assert all(state[f"n{number}"] == {POWER: "fine", RATE: "fine"} for number in (1, 7, 8, 9, 10, 11))
    assert f"{POWER} of c n4: no value since" in page
    assert "1 open regression on 12 nodes, last data" in page
    assert "2 silent, 1 failed, 1 suspicious, 1 not judged" in page


def test_what_is_not_known_is_not_called_healthy(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        store.add_values(table(6, 20).drop(columns="day"))
        found = open_regressions(store)
    states = dict.fromkeys(STATES, 0) | {"fine": 6}
    last = dt.date(2023, 12, 4)
    on_time = FIRST_S + 21 * DAY_S
    assert answer(found, states, (), on_time) == {
        "state": "fine", "text": f"Nothing open in 6 nodes, last data {last}.", "rest": "",
    }  # fmt: skip
    assert last_data(found.values, on_time) == (last, "")
    late = answer(found, states, (), FIRST_S + 60 * DAY_S)
    assert late["state"] == "notable"
    assert "No data for 41 days, before that every day" in late["text"]
    unjudged = answer(found, states | {"fine": 5, "unjudged": 1}, (), on_time)
    assert unjudged["state"] == "notable"
    assert unjudged["rest"] == "Nodes: 1 not judged."


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
    assert "lepaute watch cost n1" in text
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
    style = files("lepaute.watch.site").joinpath("templates", "site.html.j2").read_text()
    found = re.findall(r"--(alarm|failed|silent|suspicious|unjudged|fine-cell): (#[0-9a-f]{6})", style)
    colours = dict(found[: len(STATES)] if scheme == 0 else found[len(STATES) :])
    assert len(colours) == len(STATES)
    linear = {
        name: np.array([int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]) ** 2.2 for name, text in colours.items()
    }
    seen = {name: np.clip(np.array(vision) @ colour, 0, 1) ** (1 / 2.2) for name, colour in linear.items()}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 0.15, (one, other)


# ---- models ----------------------------------------------------------------------------------------------------------


def test_a_vector_is_called_by_the_name_of_its_model() -> None:
    assert title_of(" & ".join(MODEL_FACTORS)) == MODELS[MODEL_FACTORS] == "dgemm model, 8 coefficients"
    assert title_of(" & ".join(reversed(PRODUCT_FACTORS))) == "dgemm model, 3 products"
    assert title_of("a & b") == "a and b"
    assert title_of(RATE) == RATE
    assert models_of({*MODEL_FACTORS, RATE}, ["a & b"]) == ["a & b", " & ".join(MODEL_FACTORS)]
    assert models_of(set(MODEL_FACTORS[1:]), []) == []


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


def test_a_model_of_which_no_job_has_all_coefficients_has_no_page(tmp_path: Path) -> None:
    values = table(4, 12, MODEL_FACTORS)
    half = values["factor"].isin(MODEL_FACTORS[:4])
    with open_store(tmp_path / "store") as store:
        store.add_values(values[half == (values["day"] % 2 == 0)].drop(columns="day"))
        made = write_site(store, tmp_path / "site", FIRST_S + 13 * DAY_S)
    assert made.pages == 2 + len(MODEL_FACTORS) + 4
