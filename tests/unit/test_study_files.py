"""Study files and other files that people have: what they say, and what is wrong with them."""

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pyarrow
import pytest
import support_study

import lepaute as lp
from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.kit.expressions import Expression
from lepaute.simulate.conditions import read_transfer
from lepaute.simulate.platform import load_platform
from lepaute.simulate.platform.components import with_components
from lepaute.simulate.platform.io import with_values
from lepaute.simulate.prediction.comparing import share_errors
from lepaute.simulate.trace.table import FORMATS_TEXT
from lepaute.study.checking import check_study, opened_study
from lepaute.study.components import slowest_nodes, with_population_knobs
from lepaute.study.configuration import Configurations
from lepaute.study.evaluation import COLUMNS, RESPONSES, Point
from lepaute.study.running import run_study
from lepaute.study.schema import json_schema, load_study, parse_study, study_of, study_text

TEXT = support_study.TEXT.replace(
    "derived: {cost: nodes * time_s}\n",
    'responses: [time_s, cost]\nderived: {cost: nodes * time_s * 0.002}\nconstraints: ["nb * p <= 1000"]\n',
)


def checked(text: str) -> Configurations:
    configurations = Configurations(parse_study(text, "STUDY.yaml"))
    check_study(configurations, text, "STUDY.yaml")
    return configurations


def test_a_study_is_read_and_written_alike() -> None:
    study = parse_study(TEXT)
    assert parse_study(study_text(study)) == study
    assert list(study.levels) == ["scenario", "nb"]
    assert study.compared.base == "base"
    assert checked(TEXT).derived(Point({"nb": 64}), {"time_s": 10.0}) == {"cost": 0.02}


def test_one_factor_needs_no_naming_and_a_scenario_may_set_nothing() -> None:
    text = TEXT.replace("scenarios:\n  base: {}\n  half: {scale.bandwidth: 0.5}\n", "")
    assert (parse_study(text).compared.factor, parse_study(text).compared.base) == ("nb", 64)
    assert parse_study(TEXT.replace("base: {}", "base:")) == parse_study(TEXT)
    two = text.replace("levels: [64, 128]}", "levels: [64, 128]}\n  grid: {path: application.grid, levels: [1x4, 2x2]}")
    with pytest.raises(InputError, match=r"question compares scenarios, and there are none; .* whatif: \{factor: nb\}"):
        parse_study(two)


@pytest.mark.parametrize("name", ["blocks", "cluster", "effects", "network"])
def test_every_example_is_a_study_that_can_be_run(name: str) -> None:
    folder = Path(__file__).parents[2] / "examples" / "studies"
    assert {path.stem for path in folder.glob("*.yaml")} == {"blocks", "catalogue", "cluster", "effects", "network"}
    _, configurations = opened_study(folder / f"{name}.yaml")
    assert len(configurations.points()) > 1


def test_the_json_schema_names_every_field_of_the_file() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert {"question", "base", "factors", "scenarios", "constraints", "budget"} <= schema["properties"].keys()
    assert schema["$defs"]["Factor"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("question: whatif", "question: why"), r":1: question is 'why'; it must be 'whatif', "),
        (("name: hpl", "name: hp"), r":3: base.application.name is 'hp'; applications are hpl, stencil"),
        (("name: hpl", "name: [hpl]"), r":3: base.application.name is \['hpl'\]; applications are hpl, stencil"),
        (("n: 1k, grid", "order: 1k, grid"), r":8: scenarios.base cannot be: application.order is no field of hpl"),
        (("n: 1k, ", ""), r":8: scenarios.base cannot be: application.n is missing"),
        *(
            (("path: application.nb", f"path: {path}"), rf":6: factors.nb.path is '{path}'; a path begins with appl")
            for path in ("nb", "mapping", "scale", "noise")
        ),
        (("path: application.nb", "path: application.bn"), r":6: factors.nb.levels\[0\] cannot be: application.bn is"),
        (("[64, 128]", "[64, 0]"), r":6: factors.nb.levels\[1\] cannot be: nb is 0; it must be a whole number >= 1"),
        (("[64, 128]", "[64, 64.0]"), r":6: factors.nb.levels has a level twice"),
        (("levels: [64, 128]", "range: [128, 64]"), r":6: factors.nb.range is \[128, 64\]; write \[low, high\]"),
        (("levels: [64, 128]", "log: true"), r":6: factors.nb has no values; give one of levels"),
        *(
            (("  nb: {", f"  {name}: {{"), rf":6: factors.{name} is the name of something else already")
            for name in sorted({*COLUMNS, *RESPONSES, "scenario"})
        ),
        (("  nb: {", "  p: {"), r":6: factors.p is a field of the application too, and an expression names it"),
        (("  nb: {", "  2b: {"), r":6: factors.2b is '2b'; a name has letters"),
        (("scale.bandwidth: 0.5", "scale.width: 0.5"), r":9: scenarios.half cannot be: scale.width is no component"),
        (("scale.bandwidth: 0.5", "scale.bandwidth: wide"), r":9: scenarios.half cannot be: .* is 'wide'; it must be"),
        (("responses: [time_s, cost]", "responses: [price]"), r":10: responses has 'price'; responses are time_s, "),
        (("nodes * time_s", "node * time_s"), r":11: derived.cost has the unknown name node \(did you mean nodes"),
        (("nb * p <= 1000", "nb * p <="), r":12: constraints\[0\] is 'nb \* p <=', which is no expression"),
        (("nb * p <= 1000", "nb.__class__ == 1"), r":12: constraints\[0\] is .* has numbers, names"),
        (("nb * p <= 1000", "nb > 1000"), r":12: constraints hold at no point"),
        (("{path: application.nb, levels: [64, 128]}", "[64, 128]"), r":6: factors.nb is \[64, 128\]; .* \{path: "),
        (("scenarios:\n  base: {}\n  half: {scale.bandwidth: 0.5}", "scenarios: [1]"), r":7: scenarios is \[1\]; .*"),
        (("  platform: dahu\n", "platform: dahu\n"), r":4: platform is not a field of a study: it belongs under base"),
        (("  half: {scale.bandwidth: 0.5}\n", ""), r":7: scenarios has one alone"),
        (("constraints:", "constrains:"), r":12: constrains is not a field of a study \(did you mean constraints"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(change: tuple[str, str], message: str) -> None:
    assert change[0] in TEXT
    with pytest.raises(InputError, match="^STUDY.yaml" + message) as caught:
        checked(TEXT.replace(*change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "().__class__", "[1]", "lambda: 1", "f'{p}'", "p if p else q", "open('x')", "~p", "p @ q"],
)
def test_an_expression_is_arithmetic_and_nothing_else(text: str) -> None:
    with pytest.raises(InputError):
        Expression(text)


@pytest.mark.parametrize("text", ["1/0", "9**9**9", "2**1000", "(-1)**0.5", "'a'*10**9", "'a'+'b'", "x"])
def test_an_expression_without_a_value_says_so(text: str) -> None:
    with pytest.raises(InputError):
        Expression(text).value({"p": 1})


def test_expressions_compare_and_compute() -> None:
    names = {"p": 16, "q": 16, "bcast": "2ring"}
    assert Expression("p*q == 256 and bcast != '1ring'").holds(names)
    assert Expression("1 <= min(p, q) // 5 <= 3 or p < 0").holds(names)
    assert Expression("-p + sqrt(q) % 3").number(names) == -15.0


def test_a_platform_file_is_found_from_the_folder_of_the_study(tmp_path: Path) -> None:
    load_platform("dahu").to_yaml(tmp_path / "mine.yaml")
    (tmp_path / "STUDY.yaml").write_text(TEXT.replace("platform: dahu", "platform: ./mine.yaml"))
    study = load_study(tmp_path / "STUDY.yaml")
    point = Point({"nb": 64})
    assert Configurations(study, tmp_path).at(point).digest == checked(TEXT).at(point).digest


def test_the_key_of_a_simulation_is_that_of_what_is_simulated_not_of_how_it_was_written() -> None:
    one = checked(TEXT).at(Point({"nb": 128, "scenario": "base"}))
    other = checked(TEXT.replace("[64, 128]", "[96]").replace("n: 1k", "n: 1000, nb: 128, depth: 1"))
    same = Configurations(other.study.model_copy(update={"factors": {}})).at(Point({"scenario": "base"}))
    assert one.digest == same.digest
    assert one.digest != other.at(Point({"nb": 96, "scenario": "base"})).digest


def test_a_lag_and_a_transfer_layer_are_those_of_predict(tmp_path: Path) -> None:
    drift = {"days.drift": {"slope_per_s": 1e-7, "span_s": 600.0, "common_relative_sd": 0.0}}
    with_values(load_platform("dahu"), drift).to_yaml(tmp_path / "drifting.yaml")
    (tmp_path / "layer.yaml").write_text("{source: three clusters, relative_sd: 0.1, studies: [a, b, c]}")
    text = TEXT.replace("platform: dahu", "platform: ./drifting.yaml\n  transfer: layer.yaml\n  lag: 2h")
    file = tmp_path / "STUDY.yaml"
    file.write_text(text)
    run = run_study(file, runs=2, folder=tmp_path / "results")
    expected = lp.predict(
        lp.Hpl(n=1000, nb=64, p=2, q=4),
        tmp_path / "drifting.yaml",
        runs=2,
        transfer=read_transfer(tmp_path / "layer.yaml"),
        lag_s=7200.0,
    )
    ours = [one["time_s"] for one in run.outcomes if one.trial.point == Point({"scenario": "base", "nb": 64})]
    assert ours == [each.time_s for each in expected.run_list]
    again = run_study(tmp_path / "results" / "study.yaml", folder=tmp_path / "results", resume=True)
    assert again.reused == 8, "its files are found from the folder of the results"
    with pytest.raises(InputError, match=r"STUDY.yaml:\d+: base.lag is 'soon'; it is a time such as 90s, 30min"):
        parse_study(text.replace("lag: 2h", "lag: soon"), "STUDY.yaml")


DAHU = lp.load_platform("dahu")
HPL = lp.Hpl(n=3000, nb=128, p=4, q=16)


def time_s(platform: lp.Platform) -> float:
    return lp.predict(HPL, platform, runs=1, layers=lp.Layers.only("noise")).time_s.mean


def test_a_machine_whose_components_are_all_ten_times_as_fast_takes_a_tenth_of_the_time() -> None:
    free = {"iprobe_s": 0.0, "test_s": 0.0, "wtime_s": 0.0, "iprobe_looks_first": False}
    segments = [
        {**segment.model_dump(), "send": (0.0, 0.0), "isend": (0.0, 0.0), "receive": (0.0, 0.0)}
        for segment in DAHU.network.remote.segments
    ]
    pieces = lambda model: tuple(piece.model_copy(update={"per_cpu": None}) for piece in model.pieces)  # noqa: E731
    alike = DAHU.model_copy(update={"kernels": tuple(m.model_copy(update={"pieces": pieces(m)}) for m in DAHU.kernels)})
    nodes = {"nodes.cores": 1, "nodes.cpus": 1, "nodes.count": 64, "nodes.sockets": None}
    plain = with_values(
        alike, {"network.costs": free, "network.remote.segments": segments, "network.loopback.segments": None} | nodes
    )
    tenth = {"scale.computing": 10, "scale.bandwidth": 10, "scale.latency": 0.1}
    assert time_s(with_components(plain, tenth)) == pytest.approx(time_s(plain) / 10.0, rel=1e-9)


def test_noise_is_of_the_leading_term_and_can_be_taken_away() -> None:
    noisy = with_components(DAHU, {"noise.dgemm": 0.1}).kernel("dgemm")
    table = noisy.pieces[-1].per_cpu
    mnk, sd = table.columns.index("mnk"), table.columns.index("sd:mnk")
    assert all(row[sd] == 0.1 * row[mnk] for row in table.rows)
    quiet = with_components(DAHU, {"noise.dgemm": 0}).kernel("dgemm")
    assert quiet.pieces[-1].noise.kind == "none"


def test_the_slowest_nodes_are_those_of_the_slowest_cpus() -> None:
    slow = lp.load_platform("dahu-2019-04")  # nodes 13 to 16 were slow
    assert {slow.nodes.first_number + place for place in slowest_nodes(slow, 4)} == {13, 14, 15, 16}
    with pytest.raises(InputError, match="do not differ in dgemm"):
        slowest_nodes(lp.load_platform("stampede-like"), 1)
    with pytest.raises(InputError, match="cannot be left out of 32"):
        slowest_nodes(slow, 32)


def test_ranks_leave_out_the_slowest_nodes_and_the_machine_stays_the_same() -> None:
    study = study_of(
        {
            "question": "whatif",
            "base": {"application": {"name": "hpl", "n": 2000, "grid": "28x32"}, "platform": "dahu-2019-04"},
            "factors": {"without": {"path": "mapping.without_slowest", "levels": [0, 4]}},
            "whatif": {"factor": "without"},
        }
    )
    configurations = Configurations(study)
    whole, part = (configurations.at(Point({"without": count})) for count in (0, 4))
    cores = part.conditions.mapping.cores(part.conditions.platform, 28 * 32)
    assert {core // 32 + 1 for core in cores} == set(range(1, 33)) - {13, 14, 15, 16}
    assert share_errors(part.conditions.platform, whole.conditions.platform, part.application)
    assert part.digest != whole.digest


def test_machines_whose_cpus_differ_more_are_compared_with_the_same_draws() -> None:
    """Else a comparison would hold the luck of two machines, and could tell nothing apart."""
    study = study_of(
        {
            "question": "whatif",
            "base": {"application": {"name": "hpl", "n": 2000, "grid": "28x32"}, "platform": "dahu-2019-04"},
            "factors": {"spatial": {"path": "population.spatial", "levels": [0, 1, 2]}},
            "whatif": {"factor": "spatial"},
        }
    )
    none, once, twice = (Configurations(study).at(Point({"spatial": level})).conditions.platform for level in (0, 1, 2))
    assert share_errors(twice, once)
    assert share_errors(none, once)


def test_population_knobs_draw_nodes_or_days() -> None:
    spatial = with_population_knobs(DAHU, {"population.spatial": 2}).population
    assert spatial.draw == "nodes-and-days"
    temporal = with_population_knobs(DAHU, {"population.temporal": 0}).population
    assert temporal.draw == "days"
    assert not any(value for row in temporal.covariance_temporal for value in row)
    slow = with_population_knobs(lp.load_platform("dahu-2019-04"), {"population.weight[0]": 0.9}).population
    assert slow.groups[0].weight == 0.9
    assert sum(group.weight for group in slow.groups) == pytest.approx(1.0)
    for knobs in ({"population.weight[9]": 0.5}, {"population.size": 1}, {"population.spatial": -1}):
        with pytest.raises(InputError):
            with_population_knobs(DAHU, knobs)


DATA = Path(__file__).parents[1] / "data" / "small_inputs"
PREDICT = "predict trace {} -p dahu --runs 1 --without all"
INGEST = "watch ingest {0}/14-no-date.csv --mapping {0}/14-mapping.yaml --store {1}/store"
CASES = {
    "segment {}/01-rate-named-mb_s.csv": "'bandwidth_mb_s' is a rate by its name, of unknown unit; give --unit MB/s",
    "segment {}/02-imb-zero-row.txt": "caveat: line 8 of 0 bytes, for which nothing is called, left out",
    "segment {}/03-prepend-rank.txt": "from    OSU MPI Latency Test v7.4: 17 sizes from 1 B to 64 KiB, Avg Latency(us)",
    "segment {}/11-nonblocking-overall.txt": "1 caveat: the time is Pure Comm.(us); Overall(us) has what",
    "segment {}/17-imb-two-sizes.txt": "17-imb-two-sizes.txt: Reduce, 2 processes: 2 sizes; give 3 or more",
    "study check {}/../../../examples/studies/catalogue.yaml": "parts is of a catalogue, which is no study; check the",
    "segment {}/19-hump.txt": " times as long as 64 KiB",
    "compare a={0}/13-two-hundred-times-a.txt b={0}/13-two-hundred-times-b.txt": "all 7 rows b took 200 times as long",
    "compare a={0}/03-prepend-rank.txt b={0}/01-rate-named-mb_s.csv": "01-rate-named-mb_s.csv: is no output of the OSU",
    PREDICT.format("{}/07-two-applications.prv"): "1 event of another application left out of",
    PREDICT.format("{}/09-one-application.prv.gz"): "a program of 09-one-application.prv.gz, 2 ranks",
    PREDICT.format("{}/10-liballprof.txt"): f"10-liballprof.txt: of no format that is read: {FORMATS_TEXT}",
    PREDICT.format("{}"): f"of no format that is read: {FORMATS_TEXT}",
    PREDICT.format("{}/15-ti-list/run/list.txt"): "a program of list.txt, 2 ranks",
    PREDICT.format("{}/g_cut.goal"): "has 1 of 4 ranks, not rank 1; it is truncated",
    PREDICT.format("{}/g_big24.goal"): "line 1: 'num_ranks 16000000': at most 4194304 are simulated",
    PREDICT.format("{}/p_cut.prv"): "ends at 1.20 ms of 1.00 s (its header), task 1 without MPI_Finalize: truncated",
    PREDICT.format("{}/p_cut3.prv"): "ends at 1.20 ms of 1.00 s (its header), task 1 without MPI_Finalize: truncated",
    PREDICT.format("{}/p_big.prv"): "line 1: has 99999999 tasks; at most 4194304 ranks are simulated",
    "trace show {}/p_isend.prv": "ends at 1.00 µs of 1.00 s (its header)",
    PREDICT.format("{}/ti_cut_compute.txt"): "line 8: ends without a newline; the file is truncated",
    PREDICT.format("{}/ti_root.txt"): "ti_root.txt, line 1: bcast's root is 55; there are 2 ranks",
    PREDICT.format("{}/ti_msgsize2.txt"): "line 2: rank 1 receives 10 bytes of a message of 1000000 from rank 0",
    PREDICT.format("{}/ti_bigrank.txt"): "has lines of 1 rank, none of rank 0 of 16777215; it is truncated",
    PREDICT.format("{}/ti_memory_2783.txt"): "has lines of 3 ranks, none of rank 2 of 16777215; it is truncated",
    INGEST: "12 new factor values from 1 file: 1 factor of ",
    f"{INGEST} --file-date": "14-no-date.csv: --date or --file-date is given, and the mapping has a date, too",
}


@pytest.mark.parametrize("command", CASES)
def test_a_file_is_read_or_refused_as_it_should_be(command, tmp_path, capsys):
    status = main([word.format(DATA, tmp_path) for word in command.split()])
    printed = capsys.readouterr()
    assert CASES[command] in printed.out + printed.err
    assert status == (2 if "lepaute: " in printed.err else 0)


def test_messages_without_a_record_are_refused_where_no_other_side_is_known(tmp_path: Path) -> None:
    text = (DATA / "07-two-applications.prv").read_text()
    (tmp_path / "x.pcf").write_text((DATA / "07-two-applications.pcf").read_text())
    (tmp_path / "x.prv").write_text("".join(line for line in text.splitlines(True) if not line.startswith("3:")))
    with pytest.raises(lp.errors.InputError, match="has 1 send, 1 receive and no record of communication"):
        lp.read_trace(tmp_path / "x.prv")
    (tmp_path / "x.prv").write_text(text.replace("50000003:31", "50000003:99"))
    with pytest.raises(lp.errors.InputError, match=r"MPI call 99, which x.pcf does not name"):
        lp.read_trace(tmp_path / "x.prv")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, pyarrow.Codec("zstd").compress])
def test_compressed_files_are_read_by_their_content_and_refused_where_they_are_cut(pack, tmp_path):
    plain = lp.read_trace(DATA / "15-ti-list" / "run" / "list.txt")
    (tmp_path / "one.txt").write_bytes(
        pack(b"0 init\n0 send 1 0 1e6\n1 init\n1 recv 0 0 1e6\n1 finalize\n0 finalize\n")
    )
    assert lp.read_trace(tmp_path / "one.txt").to_frame().equals(plain.to_frame())
    data = bytes(pack((DATA / "19-hump.txt").read_bytes()))
    (tmp_path / "t.txt").write_bytes(data)
    assert len(lp.fit.read_durations(tmp_path / "t.txt")[0].x) == 19
    (tmp_path / "t.txt").write_bytes(pack(bytes(65 << 20)))
    with pytest.raises(lp.errors.InputError, match=r"has more than 67108864 bytes"):
        lp.fit.read_durations(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_bytes(data[: len(data) // 2])
    with pytest.raises(lp.errors.InputError, match=r"ends in the middle of its .* data; copy it again"):
        lp.fit.read_durations(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_bytes(data[:20] + b"\xff" * 20 + data[40:])
    with pytest.raises(lp.errors.InputError):
        lp.fit.read_durations(tmp_path / "t.txt")


@pytest.mark.parametrize("prefix", ["[0] ", "[1,0]<stdout>:", "[prterun-n1-17@1,0]<stdout>: ", " 0: "])
def test_what_a_launcher_puts_before_lines_is_taken_off(prefix: str, tmp_path: Path) -> None:
    lines = (DATA / "19-hump.txt").read_text().splitlines()
    other = prefix.replace("0]", "3]").replace("0:", "3:")
    plain = lp.fit.read_durations(DATA / "19-hump.txt")[0]
    text = "\n".join([*(prefix + line for line in lines[:6]), "mpirun warns", f"{other}4 99.0", ""])
    (tmp_path / "t.txt").write_text(text + "\n".join(prefix + line for line in lines[6:]))
    (table,) = lp.fit.read_durations(tmp_path / "t.txt")
    assert table.duration_s.tolist() == plain.duration_s.tolist()
    assert "left out, as the launcher's" in table.notes[-1]
    (tmp_path / "t.csv").write_text(f"{prefix}size,time_us\n{prefix}1,2\n{prefix}3,4\n")
    assert lp.fit.read_durations(tmp_path / "t.csv")[0].x.tolist() == [1, 3]


@pytest.mark.parametrize(
    "name",
    ["bandwidth_mb_s", "mb_s", "gib_s", "throughput_gb_s", "bandwidth_mb_sec", "msgs_s", "ops_s", "bw_s", "Gflops_s"],
)
def test_a_rate_is_not_read_as_seconds(name: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"size,{name}\n1,2\n3,4\n5,6\n")
    with pytest.raises(lp.errors.InputError, match=f"'{name}' is a rate by its name, of unknown unit; give --unit"):
        lp.fit.read_durations(tmp_path / "t.csv")


def test_rows_of_several_operations_are_not_fitted_as_one(tmp_path, output_of, refusal_of):
    rows = [f"{operation},{size},{size + 2}" for operation in ("send", "recv") for size in (1, 2, 3, 4)]
    (tmp_path / "t.csv").write_text("\n".join(["operation,size,time_us", *rows]))
    assert "2 operations: send, recv; keep those of one, " in refusal_of("segment", tmp_path / "t.csv")
    assert "operation=send: 4 sizes" in output_of("segment", tmp_path / "t.csv", "--where", "operation=send")


def test_columns_that_are_not_used_are_named(tmp_path, output_of):
    (tmp_path / "t.csv").write_text("size,time_us,node,meaning_us\n" + "".join(f"{size},2,a,1\n" for size in (1, 2, 3)))
    assert "2 columns not used (node, meaning_us)" in output_of("segment", tmp_path / "t.csv", "--y", "time_us")
    (tmp_path / "w.csv").write_text(
        "day,node,rate,heat,rack\n2026-01-01,a,1,,r\n2026-01-01,a,1,,r\n2026-01-02,a,2,,r\n"
    )
    factors = "{rate_flops: {column: rate, unit: flop/s}, heat_degC: {column: heat, unit: degC}}"
    (tmp_path / "m.yaml").write_text(f"node: node\ndate: day\nfactors: {factors}\n")
    words = ["watch", "ingest", str(tmp_path / "w.csv"), "--mapping", str(tmp_path / "m.yaml"), "--store"]
    told = [line.partition("w.csv: ")[2] for line in output_of(*words, tmp_path / "store").splitlines()[1:]]
    assert told == [
        "1 column that the mapping does not name (rack)",
        "3 cells without a value",
        "1 value that is there twice",
    ]
