"""`lepaute platform new`: what is given is taken, what is guessed is marked and has an error of its own."""

import re
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.kit.quantities import bandwidth_of, flops_of, memory_of, ratio_of, seconds_of
from lepaute.platform import Platform, load_platform
from lepaute.platform.data_sheet import SCALED_RELATIVE_SD, DataSheet, dgemm_rate, platform_from
from lepaute.platform.kernel_model import UPDATE, mean_s
from lepaute.platform.plausibility import implausible, unmodelled
from lepaute.simulate.apps.hpl.parameters import Hpl
from lepaute.simulate.machine.core import KERNELS
from lepaute.simulate.prediction.predicting import predict

OPTIONS = {
    "--nodes": "16", "--cores": "2x24", "--dgemm": "45G", "--link": "100Gb", "--latency": "1.5us",
    "--fat-tree": "2:1", "--memory": "192G", "--memory-bandwidth": "200GB",
}  # fmt: skip


def sheet(**changed: object) -> Platform:
    given: dict[str, object] = {
        "nodes": 2,
        "sockets": 2,
        "cores_per_socket": 4,
        "dgemm_flops": 45e9,
        "link_Bps": 1.25e10,
    }
    return platform_from(DataSheet(**(given | changed)), load_platform("dahu"))  # type: ignore[arg-type]


def made(tmp_path: Path, **changed: str | None) -> tuple[int, Path]:
    options = OPTIONS | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    words = [word for name, value in options.items() if value is not None for word in (name, value)]
    file = tmp_path / "mine.yaml"
    return main(["platform", "new", *words, "-o", str(file)]), file


def test_the_command_of_the_docs_writes_a_platform_that_is_complete(tmp_path, capsys):
    status, file = made(tmp_path)
    assert status == 0
    printed = capsys.readouterr()
    assert "platform mine: 16 nodes of 2 x 24 cores, a fat tree of 2 leaf switches with 8 nodes and 4 " in printed.out
    # what was understood, in the units in which a slip of a unit shows
    assert (
        "dgemm 45 Gflop/s a core (2160 Gflop/s a node, 34.56 Tflop/s in all), link 12.5 GB/s (100 Gb/s)" in printed.out
    )
    assert "assumed: all other kernels (sd 65 %): those of a core of dahu-2020-01, scaled by dgemm" in printed.err
    platform = load_platform(file)
    nodes = platform.nodes
    assert (nodes.count, nodes.cores, nodes.sockets, nodes.memory_bytes) == (16, 48, 2, 192 * 2**30)
    assert nodes.memory_bandwidth_Bps == 200e9
    assert dgemm_rate(platform) == pytest.approx(45e9, rel=1e-6)
    assert platform.network.node_link.bandwidth_Bps == 12.5e9
    first = platform.network.remote.segments[0]
    assert first.send[0] + first.latency_s + first.receive[0] == pytest.approx(1.5e-6)  # half a round trip
    # the largest leaf that divides 16 and has a multiple of two nodes, with half as many uplinks
    assert platform.topology.parameters == "2;8,2;1,4;1,1"
    assert main(["platform", "check", str(file)]) == 0


def test_every_guess_has_an_error_of_its_own_and_is_named_by_predictions() -> None:
    platform = sheet()
    assert all(model.discrepancy_relative_sd > 0.0 and model.discrepancy_source for model in platform.kernels)
    assert platform.kernel("dgemm").discrepancy_relative_sd < SCALED_RELATIVE_SD  # type: ignore[union-attr]
    assert min(platform.network.discrepancies.values()) > 0.0
    assert platform.days is not None
    assert platform.assumed is not None
    assert len(platform.assumed) == 7
    warnings = predict(Hpl(n=256, nb=64, p=2, q=1), platform, runs=1).warnings
    told = next(warning for warning in warnings if warning.startswith("assumed, not measured: "))
    assert "dgemm at 45 Gflop/s a core (sd 5 %), all other kernels (sd 65 %)" in told
    assert not any("call noise only" in warning for warning in warnings)


def test_no_kernel_of_hpl_costs_nothing() -> None:
    from lepaute.platform.kernel_model import models_of

    found = models_of(sheet().kernels, KERNELS, 1)
    assert set(KERNELS) - set(found) == {"pdfact_glue", "pdupdate_glue", "first_touch", "sweep"}
    assert all(mean_s(model, 100, 100, 100) > 0.0 for model in found.values())


def test_a_core_of_twice_the_dgemm_takes_half_of_the_time_for_every_kernel() -> None:
    slow, fast = sheet(dgemm_flops=20e9), sheet(dgemm_flops=40e9)
    for one, other in zip(slow.kernels, fast.kernels, strict=True):
        assert mean_s(one, *UPDATE) == pytest.approx(2.0 * mean_s(other, *UPDATE), rel=1e-5)


def test_a_peak_is_a_worse_guess_than_a_rate_of_dgemm() -> None:
    platform = sheet(dgemm_flops=None, peak_flops=60e9)
    assert dgemm_rate(platform) == pytest.approx(45e9, rel=1e-6)
    assert platform.nodes.peak_flops_per_core == 60e9
    assert platform.kernel("dgemm").discrepancy_relative_sd == 0.2  # type: ignore[union-attr]


def test_ranks_of_several_threads_have_dgemm_and_dtrsm_of_so_many_cores_and_the_rest_of_one() -> None:
    from lepaute.platform.kernel_model import models_of

    platform = sheet(threads=4)
    one, four = (models_of(platform.kernels, KERNELS, threads) for threads in (1, 4))
    for kernel in ("dgemm", "dgemm_nn", "dtrsm", "dtrsm_left"):
        assert mean_s(one[kernel], *UPDATE) == pytest.approx(0.93 * 4 * mean_s(four[kernel], *UPDATE), rel=1e-5)
        assert four[kernel].discrepancy_relative_sd > one[kernel].discrepancy_relative_sd
    for kernel in ("dlaswp01T", "dgemv", "dlacpy"):  # HPL's own loops, and memory: one core of the rank
        assert four[kernel] == one[kernel]
    assert "4 threads a rank" in {assumption.what for assumption in platform.assumed or ()}
    times = [predict(Hpl(n=2048, nb=64, p=2, q=1, threads_per_rank=t), platform, runs=1).time_s.mean for t in (1, 4)]
    assert 1.5 < times[0] / times[1] < 4.0


def test_memory_is_understood_as_it_is_sold() -> None:
    gib = 2**30
    sizes = {"192G": 192, "192GB": 192, "192GiB": 192, "192 GB": 192, "1.5T": 1536, "1TiB": 1024, "98304M": 96}
    assert {text: memory_of(text, "--memory") for text in sizes} == {text: n * gib for text, n in sizes.items()}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"dgemm": None, "peak": "2.15T"}, "nodes.peak_flops_per_core is 2.15e+12 flop/s, of one core: 103 Tflop/s"),
        ({"dgemm": "2.15T"}, "(dgemm): dgemm(4096, 4096, 128) at 2.15e+12 flop/s a core; is that of a node, or of a"),
        ({"latency": "1.5ms"}, "latency_s is 0.006 s; up to 1e-03 s are usual"),
    ],
)
def test_a_slip_of_a_unit_is_told_when_the_file_is_written(changed, told, tmp_path, capsys):
    status, _ = made(tmp_path, **changed)
    assert status == 0
    assert told in "".join(line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: "))


def test_a_kernel_whose_name_is_misspelt_is_asked_for() -> None:
    platform = sheet()
    kernels = [
        model.model_copy(update={"kernel": "dlatcopy"}) if model.kernel == "dlatcpy" else model
        for model in platform.kernels
    ]
    (told,) = unmodelled(platform.model_copy(update={"kernels": tuple(kernels)}), ["dgemm", "dlatcpy", "dlacpy"])
    assert told.endswith("cost nothing: dlatcpy (is dlatcopy meant for it?)")


def test_a_node_of_few_fast_cores_is_one_of_accelerators() -> None:
    assert not any("of a processor?" in sentence for sentence in implausible(load_platform("exascale-like")))


def test_a_prediction_tells_the_interval_of_the_share_of_the_peak_and_the_share_of_the_memory(tmp_path, capsys):
    _, file = made(tmp_path, dgemm=None, peak="60G")
    assert main(["predict", "hpl", "-p", str(file), "--n", "8k", "--nb", "128", "--grid", "2x2", "--runs", "3"]) == 0
    text = capsys.readouterr().out
    # peak of four cores; 8 * 8000^2 bytes of 192 GiB
    (peak,) = re.findall(r"peak +([0-9.]+) % of 240 Gflop/s \(([0-9]+) to ([0-9]+) %\)", text)
    assert float(peak[1]) < float(peak[0]) < float(peak[2])
    assert re.search(r"memory +0\.512\d* GB needed of 206\.2 GB on 1 node\(s\), 0\.25 %", text)


def test_the_core_may_be_one_that_the_user_has_measured(tmp_path: Path) -> None:
    mine = sheet(dgemm_flops=90e9, name="measured")
    twice = platform_from(DataSheet(1, 1, 4, dgemm_flops=45e9), mine)
    assert twice.kernel("dtrsm").pieces[0].mean["mnk"] == pytest.approx(  # type: ignore[union-attr]
        2.0 * mine.kernel("dtrsm").pieces[0].mean["mnk"]  # type: ignore[union-attr]
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"dgemm": None}, "give the speed of a core: --dgemm, such as 45G, or its nominal --peak"),
        ({"link": None}, "several nodes need the bandwidth of their link: --link, such as 100Gb"),
        ({"link": "100G"}, "--link is '100G'; it must be bits or bytes a second such as 100Gb or 12.5GB"),
        ({"dgemm": "45 apples"}, "--dgemm is '45 apples'; it must be operations a second such as 45G or 1.4T"),
        ({"latency": "1.5"}, "--latency is '1.5'; it must be a time such as 1.5us or 900ns"),
        ({"fat_tree": "2"}, "--fat-tree is '2'; it must be a ratio such as 2:1"),
        ({"nodes": "17"}, "17 nodes have no fat tree 2:1: a leaf switch has a multiple of 2 nodes that divides"),
        ({"leaf": "6"}, "16 nodes have no fat tree 2:1 with leaf switches of 6 nodes"),
        ({"cores": "2x"}, "--cores is '2x'; it must be sockets x cores such as 2x24, or cores such as 24"),
        ({"cores": "2*24"}, "--cores is '2*24'; it must be sockets x cores such as 2x24"),
        ({"memory": "192"}, "--memory is '192', 192 bytes; write it with its unit, such as 192G"),
        ({"memory": "192Gb"}, "--memory is '192Gb'; it must be a size such as 192G or 1.5T"),
        ({"dgemm": "45"}, "--dgemm is '45', 45 operations a second; write 45G for Gflop/s"),
        ({"dgemm": "45e9G"}, "--dgemm is '45e9G'; no core has more than 10^16 operations a second"),
        ({"threads": "49"}, "--threads is 49; a node has 48 cores"),
        ({"cores": "2x2000000000"}, "data sheet: nodes.cores is 4000000000; it must be <= 65536"),
        ({"like": "stampede"}, "no shipped platform and no file is named 'stampede'"),
    ],
)
def test_what_cannot_be_is_one_line_that_says_what_to_do(changed, told, tmp_path, capsys):
    status, file = made(tmp_path, **changed)
    assert status == 2
    printed = capsys.readouterr().err
    assert told in printed
    assert len(printed.splitlines()) == 1
    assert not file.exists()


def test_the_example_of_the_docs_is_complete_and_plausible(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "platform.md").read_text(encoding="utf-8")
    file = tmp_path / "example.yaml"
    file.write_text(page.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    assert main(["platform", "check", str(file)]) == 0
    assert capsys.readouterr().err == ""
    platform = load_platform(file)
    unused = {"archive_id", "blas", "sentinel", "population", "episodes", "wandering"}  # what calibrations add
    assert {name for name, value in platform if value is None} == unused
    warnings = predict(Hpl(n=512, nb=64, p=2, q=2), platform, runs=1).warnings
    assert [
        warning for warning in warnings if not warning.startswith("assumed") and "network.*.busy" not in warning
    ] == []


def test_rates_are_read_as_data_sheets_write_them() -> None:
    assert [flops_of(text, "x") for text in ("45G", "45e9", "1.4T", "45 Gflop/s")] == [45e9, 45e9, 1.4e12, 45e9]
    assert {
        bandwidth_of(text, "x") for text in ("100Gb", "100Gb/s", "100Gbps", "100 Gbit/s", "12.5GB", "12.5GB/s")
    } == {12.5e9}
    assert [seconds_of(text, "x") for text in ("1.5us", "1500ns", "0.0015ms")] == pytest.approx([1.5e-6] * 3)
    assert ratio_of("4:2", "x") == (2, 1)
