"""The pages of a watch in a real browser, by mouse and by keyboard; hostile names; whole or not at all."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import numpy as np
import pandas
import pytest
from nbclient import NotebookClient
from support_limits import HANG_S
from support_run import run_here

from lepaute.errors import InputError
from lepaute.watch import open as open_watch
from lepaute.watch.open_regressions import open_regressions
from lepaute.watch.report.factor_history import codes_of, factor_rows
from lepaute.watch.site.write import MARKER, write_site
from lepaute.watch.store import open_store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
HOSTILE = ["<script>window.bad=1</script>", "../../etc/passwd", '"><img src=x onerror=window.bad=1>', "a&b c'd"]
NOW_S = 1_795_000_000.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the fleet of the tutorial: an event, a regression, a vector."""
    folder = tmp_path_factory.mktemp("watch")
    with open_watch(folder / "store") as watch:
        watch.ingest([ROOT / "examples/watch/fleet.csv"], mapping=ROOT / "examples/watch/mapping.yaml")
        watch.test(factors=["dgemm_rate_flops", ("dgemm_rate_flops", "mean_frequency_Hz")])
    logged = run_here(
        *("watch", "events", "add", "--store", "store", "--date", "2026-01-31", "--cluster", "demo", "--node", "all"),
        *("--type", "platform", "--reason", "BIOS <b>2.8</b>"),
        folder=folder,
    )
    assert logged.returncode == 0, logged.stderr
    assert run_here("watch", "test", "--store", "store", folder=folder).returncode == 1
    done = run_here("watch", "site", "--store", "store", "-o", "site", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pages"] == len(list((folder / "site").glob("*.html")))
    return folder / "site"


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """A tab; a message of the console or an error in a script fails the test."""
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    yield tab
    tab.close()
    assert said == []


def test_from_the_landing_page_by_clicks_to_an_evolution_and_its_job(site: Path, page: "Page") -> None:
    page.goto(f"file://{site / 'index.html'}")
    assert "1 open regression on 12 nodes" in page.inner_text("main")
    assert "BIOS <b>2.8</b>" in page.inner_text("main")
    page.click("table a >> text=dgemm_rate_flops >> nth=0")
    page.wait_for_selector("#places canvas")
    assert "2 of 24 CPUs changed" in page.inner_text("main")
    assert re.search(r"Mean [0-9.]+ Gflop/s; coefficient of spatial variability [0-9.]+ %", page.inner_text("#spread"))
    for view, legend in (("means", "changed"), ("values", "or more"), ("jobs", "as before")):
        page.click(f"[data-view={view}]")
        page.wait_for_selector(f"#overview[data-drawn={view}]")
        assert legend in page.inner_text("#legend")
    assert "2026-01-31: BIOS" in page.inner_text("ol.events li.platform")
    page.mouse.wheel(0, 200)
    box = page.locator("#overview").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    assert re.search(r"node\d+:\d 2026-0", page.inner_text("#point"))
    page.click("#point a")
    page.wait_for_selector("[data-drawn]")
    page.click("[data-view=window]")
    page.wait_for_selector("[data-drawn$=window]")
    assert page.inner_text("[data-view=window]") == "mean of 5 jobs"
    page.focus("#evolution")
    page.keyboard.press("End")
    assert re.search(r"2026-02-28 .* job 411\d\d", page.inner_text("#point"))


def test_the_same_by_keyboard_alone(site: Path, page: "Page") -> None:
    page.goto(f"file://{site / 'index.html'}")

    def tab_to(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("(one) => document.activeElement.matches(one)", selector):
                return
        raise AssertionError(selector)

    tab_to("a[href^=factor-]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#places canvas")
    tab_to("#overview")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("+")
    assert re.search(r"node\d+:\d 2026-0", page.inner_text("#point"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/node-*")
    page.wait_for_selector("[data-drawn]")
    tab_to("#evolution")
    page.keyboard.press("End")
    assert "job 411" in page.inner_text("#point")


@pytest.mark.parametrize("width", [1200, 400])
def test_pages_fit_are_dark_and_can_be_printed(site: Path, page: "Page", width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme="dark")
    for path in [site / "index.html", *(next(site.glob(f"{kind}-*.html")) for kind in ("factor", "node", "event"))]:
        page.goto(f"file://{path}")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shown = "[...document.querySelectorAll('.scroll')].map(one => getComputedStyle(one).backgroundImage)"
        assert all("gradient" in shade for shade in page.evaluate(shown)), "a table shows that it goes on"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    page.emulate_media(media="print", color_scheme="light")
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_hostile_names_are_text_and_stay_in_the_folder(tmp_path: Path, page: "Page") -> None:
    rows = [
        {
            "cluster": HOSTILE[0], "node": node, "cpu": -1, "job": f"{node}{day}", "started_s": NOW_S + 86_400.0 * day,
            "stratum": "s", "factor": f"rate{HOSTILE[2]}_flops", "value": 1.0 + 0.01 * (day % 3), "state": "done",
            "archive": "",
        }
        for node in HOSTILE
        for day in range(12)
    ]  # fmt: skip
    with open_watch(tmp_path / "store") as watch:
        watch.store.add_values(pandas.DataFrame(rows))
        watch.test()
        made = write_site(watch.store, tmp_path / "site", NOW_S)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site", "store"]
    assert made.pages == len(list((tmp_path / "site").glob("*.html"))) == 2 + 1 + len(HOSTILE)
    shown = set()
    for path in (tmp_path / "site").glob("*.html"):
        assert re.fullmatch(r"[a-z0-9-]+\.html", path.name)
        page.goto(f"file://{path}")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.bad") is None
        assert page.locator("main img").count() == 0
        if path.name.startswith("node-"):
            shown.add(page.inner_text("h1"))
    assert shown == {f"{HOSTILE[0]} {node}" for node in HOSTILE}


def test_an_older_site_is_replaced_and_anything_else_is_not(tmp_path: Path) -> None:
    row = {"cluster": "c", "node": "n1", "cpu": 0, "job": "1", "started_s": NOW_S, "stratum": "s", "factor": "x_s"}
    table = pandas.DataFrame([row | {"value": 1.0, "state": "done", "archive": ""}])
    folder = tmp_path / "site"
    with open_store(tmp_path / "store") as store:
        with pytest.raises(InputError, match="no factor values"):
            write_site(store, folder, NOW_S)
        store.add_values(table)
        folder.mkdir()
        (folder / "thesis.tex").write_text("precious")
        with pytest.raises(InputError, match="no site of lepaute"):
            write_site(store, folder, NOW_S)
        assert [path.name for path in folder.iterdir()] == ["thesis.tex"]
        (folder / "thesis.tex").unlink()
        write_site(store, folder, NOW_S)
        (folder / "node-old.html").write_text("")
        write_site(store, folder, NOW_S)
        assert not (folder / "node-old.html").exists()
        assert (folder / MARKER).is_file()
        with pytest.raises(InputError, match="there is no folder"):
            write_site(store, tmp_path / "no" / "site", NOW_S)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site", "store"]


def test_rows_have_the_latest_verdict_and_the_mean_of_their_window(site: Path) -> None:
    with open_store(site.parent / "store") as store:
        factor = factor_rows(store, open_regressions(store), "demo", "dgemm_rate_flops")
        known = store.verdicts(factors=["dgemm_rate_flops"], r=5, nodes=["node7"], pooled=False)
    assert factor.window == 5
    own = factor.rows[(factor.rows["node"] == "node7") & (factor.rows["cpu"] == 0)].reset_index(drop=True)
    tested = known[(known["cpu"] == 0) & (known["missing"] == 0)].sort_values("judged_s")
    tested = tested.drop_duplicates("job", keep="last").set_index("job")
    shown = own[own["mean_w"].notna()]
    assert len(shown) > 20
    for at, row in shown.iterrows():
        assert row["low_w"] == tested.loc[str(row["job"]), "low"]
        assert row["mean_w"] == pytest.approx(own["value"][int(str(at)) - 4 : int(str(at)) + 1].mean())  # type: ignore[misc]
    codes = np.array(codes_of(factor))
    assert len(codes) == len(factor.rows)
    # all jobs since the drop of 10 % are of the regression, however many there are, and nobody else's is
    regressed = factor.rows[codes == "R"]
    since_s = regressed["started_s"].min()
    mine = (factor.rows["node"] == "node7") & (factor.rows["started_s"] >= since_s) & (factor.rows["state"] == "done")
    assert set(regressed["node"].astype(str)) == {"node7"}
    assert regressed.index.tolist() == factor.rows.index[mine].tolist()
    assert (regressed["p_value"] < 1e-4).all()
    assert (regressed["value"] < regressed["low"]).all()


def test_from_the_map_to_a_node_and_from_a_factor_to_another(site: Path, page: "Page") -> None:
    page.goto(f"file://{site / 'index.html'}")
    assert page.locator(".map .nodes a").count() == 12
    page.click(".map .nodes a:has-text('node7')")
    page.wait_for_selector("[data-drawn]")
    assert page.inner_text("h1") == "demo node7"
    assert "BIOS" in page.inner_text("ol.events")
    page.goto(f"file://{next(site.glob('factor-demo-mean-temp*.html'))}")
    page.select_option("#jump", label="dgemm_rate_flops and mean_frequency_Hz (changed)")
    page.wait_for_selector("#overview[data-drawn=jobs]")
    assert page.inner_text("h1") == "demo: dgemm_rate_flops and mean_frequency_Hz"
    assert "mean_frequency_Hz" in page.inner_text("table")  # which of them moved, on node 7


@pytest.mark.slow
def test_the_notebook_of_a_factor_makes_its_pictures_from_the_store(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEPAUTE_STORE", str(site.parent / "store"))
    assert len(list(site.glob("*.ipynb"))) == len(list(site.glob("factor-*.html"))) == 4
    documents = []
    for name in ("demo-dgemm-rate-flops-*", "demo-dgemm-rate-flops-mean-*"):
        (path,) = (path for path in site.glob(f"factor-{name}.ipynb") if ("mean" in path.name) == ("mean" in name))
        documents.append(nbformat.read(path, as_version=4))
        nbformat.validate(documents[-1])
        assert str(site.parent) not in path.read_text()  # a page tells nobody where the store is
    # one kernel for both, in which the second finds no name of the first
    both = documents[0].copy()
    both.cells = [*documents[0].cells, nbformat.v4.new_code_cell("%reset -f"), *documents[1].cells]
    NotebookClient(both, timeout=HANG_S).execute()
    pictures = [
        sum(
            "image/png" in output.get("data", {})
            for cell in document.cells
            if "outputs" in cell
            for output in cell.outputs
        )
        for document in documents
    ]
    # overviews of jobs, means and values, distribution, places, a node by jobs and means; of a vector two overviews
    assert pictures == [7, 2]


def test_a_factor_is_a_table_and_pictures(site: Path) -> None:
    from matplotlib import pyplot

    with open_watch(site.parent / "store") as watch:
        factor = watch.factor("dgemm_rate_flops", cluster="demo")
        vector = watch.factor(["dgemm_rate_flops", "mean_frequency_Hz"], cluster="demo")
        with pytest.raises(InputError, match="has no factor 'x_s'; it has dgemm_rate_flops"):
            watch.factor("x_s", cluster="demo")
    last = factor.rows[factor.rows["state"] == "done"].groupby(["node", "cpu"], observed=True)["value"].last()
    assert factor.spread.machines == 24
    assert factor.spread.mean == pytest.approx(last.mean())
    assert factor.spread.coefficient == pytest.approx(last.std() / last.mean())
    for view in ("jobs", "means", "values"):
        axes = factor.overview(view)
        drawn = sum(len(points.get_offsets()) for points in axes.collections)
        assert drawn == (factor.rows["value"].notna().sum() if view == "values" else len(factor.rows))
        assert [text.get_text() for text in axes.texts] == ["platform: BIOS <b>2.8</b>"]
    _, ax = pyplot.subplots()
    assert factor.evolution("node7", ax=ax) is ax
    assert "spatial variability" in factor.distribution().get_title(loc="left")
    factor.places()
    assert {each.node for each in vector.moved} == {"node7"}
    for wrong in (vector.distribution, lambda: vector.evolution("node7"), lambda: factor.evolution("node99")):
        with pytest.raises(InputError):
            wrong()
    with pytest.raises(InputError, match="give jobs, means or values"):
        factor.overview("jbos")  # type: ignore[arg-type]
    pyplot.close("all")
