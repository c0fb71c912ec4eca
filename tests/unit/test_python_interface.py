"""What `import lepaute as lp` offers in an interpreter and in a notebook."""

import doctest
import json
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas
import pytest
from support_archive import experiment_archive
from support_limits import ran

import lepaute as lp
from lepaute.errors import InputError
from lepaute.kit.text import without_figures
from lepaute.simulate.trace import trace_of_columns

DATA = Path(__file__).parents[1] / "data" / "duration_tables"


@pytest.fixture(scope="module")
def prediction():
    return lp.predict(lp.Hpl(n=2000, p=2, q=2), "dahu", runs=3)


@pytest.fixture(scope="module")
def line():
    (table,) = lp.fit.read_durations(DATA / "osu_three_protocols.txt")
    return lp.fit.segment(table.x, table.duration_s)


@pytest.fixture(scope="module")
def design():
    return lp.design.full_factorial({"size_bytes": [1, 1024], "op": ["<b>", "recv"], "r": [0.5, 2.0]}, seed=1)


@pytest.fixture(scope="module")
def trace():
    columns = {
        "rank": np.array([0, 0, 1]), "start_s": np.array([0.0, 1.0, 0.0]), "duration_s": np.array([1.0, 0.5, 2.0]),
        "kind": np.array([0, 1, 0]), "name": np.array([0, 1, 0]),
    }  # fmt: skip
    return trace_of_columns(columns, ("dgemm", "MPI_Send"), {"source": "recording"})


def test_the_lines_that_help_opens_with_run():
    test = doctest.DocTestParser().get_doctest(str(lp.__doc__), {}, "lepaute", None, None)
    assert 4 <= len(test.examples) <= 5
    assert doctest.DocTestRunner().run(test).failed == 0


def test_import_stays_light():
    # Names are loaded when they are first used.
    heavy = "[name for name in ('numpy', 'pandas', 'scipy', 'pydantic', 'typer') if name in sys.modules]"
    code = f"import sys, lepaute; dir(lepaute); lepaute.fit; print({heavy})"
    assert ran([sys.executable, "-c", code], check=True).stdout == "[]\n"


def test_whatever_is_shown_in_an_interpreter_is_short(prediction, line, design, trace):
    assert repr(lp.load_platform("dahu")) == "<Platform 'dahu-2020-01': 32 x 32 cores, 25 kernel models>"
    assert str(lp.load_platform("dahu")) == repr(lp.load_platform("dahu"))
    assert repr(prediction).startswith("<Prediction of HPL N = 2000")
    assert repr(prediction).endswith(" s), 3 runs>")
    assert repr(line) == "<SegmentedLine of 23 points: breakpoints 512, 16384, 262144>"
    assert repr(design) == "<Design of 8 rows: size_bytes, op, r>"
    assert repr(trace) == "<Trace: 3 calls of 2 ranks, 2.00 s>"
    for shown in (prediction, line, design, trace):
        assert len(repr(shown)) < 200


def test_the_parameters_of_an_application_show_what_was_set_and_are_read_back():
    hpl = lp.Hpl(n=2000, nb=64, p=2, q=2)
    assert repr(hpl) == "Hpl(n=2000, nb=64, p=2, q=2)"
    assert eval(repr(hpl), {"Hpl": lp.Hpl}) == hpl  # noqa: S307 - a text of ours


def test_in_a_notebook_everything_is_a_table_of_plain_text(prediction, line, design, trace):
    for shown in (lp.load_platform("dahu"), prediction, line, design, trace):
        html = shown._repr_html_()
        assert html.count("<table") == 1
        assert len(html) < 6000
    assert "<b>&lt;" not in prediction._repr_html_()
    assert "&lt;b&gt;" in design._repr_html_()
    assert prediction.warnings
    assert "warning: dlocswp is not modelled by the platform" in prediction._repr_html_()


def test_a_prediction_is_a_frame_with_a_row_a_run_that_can_be_put_below_others(prediction):
    stencil = lp.predict(lp.Stencil(cells=(64, 64, 64), grid=(2, 1, 1), cell_time_s=1e-9), "dahu", runs=2)
    both = pandas.concat([prediction.to_frame(), stencil.to_frame()], ignore_index=True)
    assert both["application"].tolist() == ["hpl"] * 3 + ["stencil"] * 2
    assert both["cells"].tolist()[3:] == ["64x64x64"] * 2
    assert both["n"].tolist()[:3] == [2000] * 3
    assert both["time_s"].tolist() == [run.time_s for one in (prediction, stencil) for run in one.run_list]
    assert prediction.to_frame()["rate_gflops"].mean() == pytest.approx(prediction.rate_gflops.mean)


def test_overrides_of_the_platform_are_columns_and_those_that_change_no_time_are_said():
    hpl, settings = lp.Hpl(n=1000, p=1, q=2), {"scale.computing": "0.5"}
    usual, slowed = (lp.predict(hpl, "dahu", runs=1, settings=each) for each in ({}, settings))
    assert slowed.to_frame()["set scale.computing"].tolist() == ["0.5"]
    assert slowed.run_list[0].time_s > 1.5 * usual.run_list[0].time_s
    with pytest.raises(ValueError, match="no field"):
        lp.predict(hpl, "dahu", runs=1, settings={"network.speed": "2"})
    hpl = lp.Hpl(n=1000, p=2, q=1)
    width = {"network.node_link.bandwidth_Bps": "25e9"}
    found = lp.predict(hpl, "dahu", runs=2, settings={**width, "scale.computing": "2"})
    assert [line for line in found.warnings if "the setting" in line] == [
        "the setting network.node_link.bandwidth_Bps=25e9 changes no time of this run; where the segments of messages "
        "decide, scale.bandwidth=FACTOR turns them and the links"
    ]
    assert not any("the setting" in line for line in lp.predict(hpl, "dahu", runs=2).warnings)


def test_the_columns_of_a_design_have_the_types_of_their_factors(design):
    frame = design.to_frame()
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "string", "Float64"]
    mixed = lp.design.mix(design, lp.design.full_factorial({"n": [1, 2]}, seed=1), seed=1).to_frame()
    assert str(mixed["n"].dtype) == "Int64"
    assert mixed["n"].isna().sum() == 8
    assert mixed["op"].isna().sum() == 2


def test_an_emulation_from_python_checks_what_it_is_given():
    with pytest.raises(InputError, match="ranks is 0; it is a whole number from 1"):
        lp.emulate("a.out", "dahu", ranks=0)
    with pytest.raises(InputError, match=r"a\.out"):
        lp.emulate("a.out", "dahu", ranks=2)


def test_an_archive_shows_what_it_is_and_its_tables_and_what_to_give_for_one_that_is_not_there(tmp_path):
    archive = lp.Archive.open(experiment_archive(tmp_path / "a.zip"))
    assert repr(archive).startswith(f"<Archive '{tmp_path}/a.zip': experiment, ")
    assert "observations/bench.parquet" in archive._repr_html_()
    path = experiment_archive(tmp_path / "a.zip")
    with pytest.raises(lp.LepauteError, match=r"has no member bench; observations/bench\.parquet is one"):
        lp.Archive.open(path).table("bench")


def test_a_design_in_an_archive_keeps_the_types_of_its_columns(tmp_path):
    text = "#@columns=n:int,policy:text,ratio:real\ndesign_row,n,policy,ratio\n0,1,NA,0.5\n1,,,2\n"
    frame = lp.Archive.open(experiment_archive(tmp_path / "a.zip", design_csv=text)).table("design.csv")
    assert [str(frame[name].dtype) for name in ("n", "policy", "ratio")] == ["Int64", "string", "Float64"]
    assert frame["policy"].tolist()[0] == "NA"  # a level of that name, not a missing one
    assert frame["n"].isna().tolist() == [False, True]


@pytest.mark.parametrize("wrong", [{"mapping": "random"}, {"layers": "days"}, {"trace": True}])
def test_an_argument_of_another_type_is_told_with_where_the_right_one_is(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=rf"{name} is .*; give a \w+ \(from lepaute\.simulate\."):
        lp.predict(lp.Hpl(n=2000, p=2, q=2), "dahu", runs=1, **wrong)


def test_an_archive_is_taken_by_its_file_or_opened_one_or_several(tmp_path):
    path = experiment_archive(tmp_path / "a.zip")
    archive = lp.Archive.open(path)
    assert lp.Archive.open(archive) is archive
    diagnose = partial(lp.fit.diagnose, models=None)
    for call in (lp.fit.models, diagnose, lp.fit.findings, lp.compare.archives, lp.compare.by_ranks):
        for taken in (archive, path, str(path)):
            with pytest.raises(lp.LepauteError, match=r"a\.zip"):  # which is of another kind
                call(taken)
        with pytest.raises(lp.InputError, match=r" 7, a int; give "):
            call(7)
    with lp.watch.open(tmp_path / "store") as watch:
        added = [len(watch.ingest(taken).added) for taken in (str(path), path, archive, [archive, path])]
        assert added == [1, 0, 0, 0]


def test_every_result_is_html_in_a_notebook(prediction, tmp_path):
    again = lp.predict(lp.Hpl(n=2000, p=2, q=2), "dahu", runs=3, repeat=1)
    with lp.watch.open(tmp_path / "store") as watch:
        shown = [prediction.time_s, lp.difference(prediction, again), watch, watch.changelog(), watch.ingest([])]
        for result in shown:
            assert result._repr_html_().count("<table") == 1
        assert repr(watch).startswith("<Watch of <Store ")


def test_a_plot_is_drawn_on_the_axes_that_are_given_or_on_new_ones_which_it_returns(prediction, line, tmp_path):
    from matplotlib import pyplot
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    pyplot.switch_backend("agg")
    pyplot.close("all")
    assert isinstance(prediction.plot(tmp_path / "runs.png"), Axes)
    assert (tmp_path / "runs.png").read_bytes().startswith(b"\x89PNG")
    assert pyplot.get_fignums() == []  # a file is written without a trace in pyplot
    shown = prediction.plot()
    assert pyplot.get_fignums() == [shown.figure.number]  # which is what a notebook shows
    pyplot.close("all")
    figure, (left, right) = pyplot.subplots(1, 2)
    assert prediction.plot(ax=left) is left
    assert line.plot(ax=right) is right
    assert left.get_xlabel() == "time of a run (s)"
    assert len(right.lines) >= 2 + len(line.breakpoints)
    pyplot.close(figure)
    both = line.plot()
    assert isinstance(both, Figure)
    assert len(both.axes) == 2
    assert pyplot.get_fignums() == []


def test_the_first_example_warns_of_nothing_and_another_run_once_a_process() -> None:
    example = Path(__file__).parents[2].joinpath("README.md").read_text().split("```python\n")[1].partition("```")[0]
    assert ran((sys.executable, "-W", "error", "-c", example), check=True).stderr == ""
    lines = "import lepaute as lp\n" + 2 * 'lp.predict(lp.Hpl(n=2000, p=2, q=2), "dahu", runs=1)\n'
    told = ran((sys.executable, "-c", lines), check=True).stderr.split(": PredictionWarning: ")[1:]
    assert len(told) == len({text.splitlines()[0] for text in told}) > 0


def test_what_a_prediction_rests_on_is_raised_once_by_warnings_and_can_be_silenced():
    hpl = lp.Hpl(n=2000, p=2, q=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", lp.PredictionWarning)
        listed = [lp.predict(lp.Hpl(n=n, p=2, q=2), "dahu", runs=1).warnings for n in (2000, 2300, 2700)]
    told = [str(one.message) for one in caught]
    assert len(set(listed)) == 3  # they differ in figures, and each cause is told once
    assert len(told) == len(set(told)) == len(listed[0])
    assert [said.removesuffix(" (figures in Prediction.warnings)") for said in told] == [
        without_figures(full) for full in listed[0]
    ]
    assert {one.category for one in caught} == {lp.PredictionWarning}
    assert {one.filename for one in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", lp.PredictionWarning)
        with pytest.raises(lp.PredictionWarning, match="not modelled by the platform"):
            lp.predict(hpl, "dahu", runs=1)
        from lepaute.simulate import PredictionRequest, predict_all

        predict_all([hpl], "dahu", PredictionRequest(runs=1))  # of the commands, which print them


class Pair(lp.Application):
    """Parameters of all kinds."""

    grid: lp.Grid
    n: int = 3
    cell_s: float = 1e-6
    word: str = "some"
    flag: bool = False
    unit = lp.Cost("cell_s", noise=0.1)

    def run(self, me):
        yield me.compute(self.unit, self.n)
        yield me.barrier()


PREDICTED = {
    "own": lambda: lp.predict(Pair(grid="2x1"), "dahu", runs=2, mapping=lp.Mapping("random", 7)),
    "hpl": lambda: lp.predict(lp.Hpl(n=2000, p=2, q=2), "dahu", runs=3, settings={"scale.bandwidth": 2}),
    "one run": lambda: lp.predict(lp.Hpl(n=2000, p=2, q=2), "dahu", runs=1),
    "sampled": lambda: lp.predict(lp.Hpl(n=20_000, p=2, q=2), "dahu", runs=2, fidelity="sampled", lag_s=3600.0),
    "stencil": lambda: lp.predict(
        lp.Stencil(cells=(32, 32, 32), cell_time_s=1e-9),
        "dahu",
        runs=2,
        mapping=lp.Mapping("random", 7),
        layers=lp.Layers.only("noise"),
    ),
    "with energy": lambda: lp.predict(
        lp.Hpl(n=2000, p=2, q=2),
        lp.override(lp.load_platform("dahu"), {"power": "{idle_W: 100, computing_W: 400, communicating_W: 300}"}),
        runs=2,
    ),
}


@pytest.mark.parametrize("kind", PREDICTED)
def test_a_prediction_is_read_back_as_it_was_written(kind, tmp_path):
    found = PREDICTED[kind]()
    found.to_json(tmp_path / "p.json")
    again = lp.read_prediction(tmp_path / "p.json")
    assert again.to_dict() == found.to_dict()
    assert str(again.time_s) == str(found.time_s)  # as text, in which NaN is NaN
    assert str(again.rate) == str(found.rate)
    assert again.warnings == found.warnings
    assert (again.comparable, again.trust) == (found.comparable, found.trust)
    pandas.testing.assert_frame_equal(again.runs, found.runs)
    pandas.testing.assert_frame_equal(
        again.to_frame().drop(columns="energy_j"), found.to_frame().drop(columns="energy_j")
    )
    again.to_json(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "p.json").read_bytes()
    assert repr(again) == repr(found)
    with pytest.raises(InputError, match="not made by predict"):
        lp.difference(again, found)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("runs"),
        lambda document: document["runs"].clear(),
        lambda document: document["runs"][0].pop("seed"),
        lambda document: document["parameters"].update(n=-1),
        lambda document: document["parameters"].update(bcast=None),
        lambda document: document.update(application="solver"),
        lambda document: document["time_s"].update(mean=None),
        lambda document: document.update(trust=[]),
        lambda document: document.update(predictions=[]),
        lambda document: document["simulation"].pop("messages"),
    ],
)
def test_a_file_that_is_no_prediction_is_refused_in_one_line(change, prediction, tmp_path):
    document = json.loads(json.dumps(prediction.to_dict()))
    change(document)
    (tmp_path / "p.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"p\.json: ") as refused:
        lp.read_prediction(tmp_path / "p.json")
    assert "\n" not in str(refused.value)


def test_tables_have_the_same_columns_and_types_whatever_the_values():
    hpl = lp.Hpl(n=2000, p=2, q=2)
    power = {"power": "{idle_W: 100, computing_W: 400, communicating_W: 300}"}
    different = [
        lp.predict(hpl, "dahu", runs=2),
        lp.predict(hpl, "dahu", runs=1, repeat=1, layers=lp.Layers.only(), lag_s=60.0),
        lp.predict(hpl, lp.override(lp.load_platform("dahu"), power), runs=1, mapping=lp.Mapping("random", 2**64 - 1)),
    ]
    one, *others = (each.to_frame().dtypes.to_dict() for each in different)
    assert all(other == one and list(other) == list(one) for other in others)
    assert {str(kind) for kind in one.values()} <= {"string", "int64", "Int64", "uint64", "UInt64", "bool", "float64"}
    assert different[1].to_frame()["lag_s"].tolist() == [60.0]
    assert different[2].to_frame()["mapping_seed"].tolist() == [2**64 - 1]


def test_numbers_are_settings_as_texts_are():
    dahu = lp.load_platform("dahu")
    for texts, numbers in (
        ({"nodes.count": "4"}, {"nodes.count": 4}),
        ({"scale.computing": "2"}, {"scale.computing": 2.0}),
    ):
        assert lp.override(dahu, texts).sha256 == lp.override(dahu, numbers).sha256


def test_the_second_of_two_emulations_has_another_noise(monkeypatch, tmp_path):
    from lepaute.simulate.apps import program

    asked = []
    monkeypatch.setattr(program, "raise_warnings", lambda _: None)
    monkeypatch.setattr(program, "predict", lambda *_, **given: asked.append(given))
    for repeat in (0, 1):
        lp.emulate(tmp_path / "solver", "dahu", ranks=2, repeat=repeat)
    assert [given["repeat"] for given in asked] == [0, 1]
    with pytest.raises(InputError, match=r"options is .*give a lepaute\.Options"):
        lp.emulate(tmp_path / "solver", "dahu", ranks=2, options="fold")
