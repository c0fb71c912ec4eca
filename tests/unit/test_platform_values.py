"""Values of a platform, those that no machine has, and platforms from data sheets."""

import copy
import math
import pickle
import re
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas
import pytest
from annotated_types import Ge
from pydantic import BaseModel, ValidationError

from lepaute.cli.main import main
from lepaute.kit.quantities import bandwidth_of
from lepaute.simulate.apps.hpl.parameters import Hpl
from lepaute.simulate.machine.core import KERNELS
from lepaute.simulate.platform import Platform, load_platform, override, shipped_names
from lepaute.simulate.platform.data_sheet import SCALED_RELATIVE_SD, SHARES, DataSheet, dgemm_rate, platform_from
from lepaute.simulate.platform.guessed_messages import Link
from lepaute.simulate.platform.kernel_model import UPDATE, mean_s, models_of
from lepaute.simulate.platform.plausibility import implausible, unmodelled
from lepaute.simulate.platform.values import Check, Value, fault
from lepaute.simulate.prediction.predicting import predict


def _even(value: int) -> int:
    if value % 2:
        raise fault("is odd")
    return value


class Base(Value):
    size: Annotated[int, Ge(0), Check(after=_even)] = 2


class Leaf(Base):
    """With an own field, a default made anew, and a rule about several."""

    kind: Literal["a", "b"] = "a"
    table: dict[str, float] = field(default_factory=dict)

    @property
    def double(self) -> int:
        return 2 * self.size

    def __post_init__(self) -> None:
        if self.kind == "b" and self.double < 8:
            raise fault(f"is {self.size}", "size")


class Tree(Value):
    leaf: Leaf
    others: tuple[Leaf, ...] = ()
    either: Leaf | None = None
    usual: Leaf = Leaf.model_construct(size=4)
    again: tuple[Leaf, ...] = ()


def test_a_value_is_checked_as_it_is_made_and_has_plain_parts() -> None:
    tree = Tree.model_validate({"leaf": {"size": 4, "table": {"x": 1}}, "others": [{}, {"kind": "b", "size": 6}]})
    assert (type(tree), type(tree.leaf), type(tree.others[1]), type(tree.usual)) == (Tree, Leaf, Leaf, Leaf)
    assert (tree.leaf.size, tree.leaf.double, tree.leaf.table, tree.usual.size) == (4, 8, {"x": 1.0}, 4)
    with pytest.raises(ValidationError, match="is 2"):  # the second field of this class has its rule too
        Tree.model_validate({"leaf": {}, "again": [{"kind": "b"}]})
    for wrong, at in (({"size": 3}, ("size",)), ({"kind": "c"}, ("kind",)), ({"no": 1}, ("no",)), ({"kind": "b"}, ())):
        with pytest.raises(ValidationError) as refused:
            Tree.model_validate({"leaf": wrong})
        assert refused.value.errors()[0]["loc"] == ("leaf", *at)


def test_a_value_takes_the_place_of_its_content_and_no_other() -> None:
    leaf = Leaf(size=6)
    assert Tree(leaf=leaf, others=(leaf,), either=leaf) == Tree.model_validate(
        {"leaf": {"size": 6}, "others": [{"size": 6}], "either": {"size": 6}}
    )
    with pytest.raises(ValidationError):
        Tree(leaf=Base(size=6))  # type: ignore[arg-type]


def test_a_value_is_frozen_copied_compared_shown_and_sent() -> None:
    tree = Tree(leaf=Leaf(size=6))
    with pytest.raises(FrozenInstanceError):
        tree.leaf = Leaf()  # type: ignore[misc]
    other = tree.model_copy(update={"leaf": Leaf()})
    assert (tree.leaf.size, other.leaf.size, other.usual) == (6, 2, tree.usual)
    assert tree == copy.deepcopy(tree) == pickle.loads(pickle.dumps(tree)) != other
    assert hash(Base()) == hash(Base(size=2)) != hash(Base(size=4))
    assert Base() != Leaf()
    assert repr(Leaf(size=6)) == "Leaf(size=6, kind='a', table={})"
    assert Leaf.model_construct().table is not Leaf.model_construct().table


def test_dumps_and_schemas_are_those_of_pydantic() -> None:

    tree = Tree(leaf=Leaf(size=6))
    leaf = {"size": 6, "kind": "a", "table": {}}
    assert tree.model_dump() == {"leaf": leaf, "others": (), "either": None, "usual": leaf | {"size": 4}, "again": ()}
    assert tree.model_dump(mode="json", exclude_none=True)["others"] == []
    assert tree.model_dump(exclude_defaults=True) == {"leaf": {"size": 6}}
    assert Tree.model_json_schema()["$defs"]["Leaf"]["properties"]["size"] == {
        "default": 2, "minimum": 0, "title": "Size", "type": "integer",
    }  # fmt: skip

    class Holder(BaseModel):
        tree: Tree

    assert Holder.model_validate({"tree": {"leaf": {"size": 6}}}).tree == tree
    assert "Leaf" in Holder.model_json_schema()["$defs"]


SMALL = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"
BASE = override(load_platform(SMALL), {"kernels[0].pieces[1].per_cpu": "null"})
MEAN = "kernels[0].pieces[1].mean"


@pytest.mark.parametrize("name", [*shipped_names(), str(SMALL)])
def test_a_platform_of_a_real_machine_is_plausible(name: str) -> None:
    assert implausible(load_platform(name)) == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        # what the issue saw: a rate instead of seconds, a latency of 1.5 s, dgemm 90 times above the file's own peak
        ({MEAN: "{mnk: 45e9}"}, "kernels[0] (dgemm): dgemm(4096, 4096, 128) at 4.44e-11 flop/s a core; a core does"),
        ({"network.remote.segments[0].latency_s": "1.5"}, "network.remote.segments[0].latency_s is 1.5 s; up to 1e-03"),
        ({MEAN: "{mnk: 1e-12}", "nodes.peak_flops_per_core": "22e9"}, "dgemm(4096, 4096, 128) at 2e+12 flop/s a core"),
        ({MEAN: "{mnk: 1e-16}"}, "at 2e+16 flop/s a core"),
        ({MEAN: "{mnk: -1e-11}"}, "takes -0.0215 s; a duration is above 0"),
        ({"nodes.peak_flops_per_core": "45"}, "nodes.peak_flops_per_core is 45 flop/s; a core has 1e+08"),
        ({"nodes.memory_bytes": "192"}, "nodes.memory_bytes is 192: 1.79e-07 GiB a node; it is in bytes"),
        ({"network.node_link.bandwidth_Bps": "100"}, "network.node_link.bandwidth_Bps is 100; a link has 1e+05 to"),
        ({"network.node_link.bandwidth_Bps": "1e9"}, "a long message has 1.2e+10 B/s, the link of its node 1e+09 B/s"),
        ({"network.remote.segments[1].bandwidth_Bps": "12.5"}, "network.remote.segments[1].bandwidth_Bps is 12.5"),
        ({"network.remote.segments[0].send": "[1.5, 0]"}, "network.remote.segments[0].send is [1.5, 0]; less than"),
        (
            {"network.remote.segments[0].latency_s": "0", "network.remote.segments[0].send": "[0, 0]"},
            "network.remote.segments[0]: 0 bytes take 0 s (send, latency, receive); at least 3e-08 s are usual",
        ),
        ({"network.costs.iprobe_s": "0.2"}, "network.costs.iprobe_s is 0.2 s"),
        ({"days.common_relative_sd": "1.5"}, "days.common_relative_sd is 1.5; it is a fraction, 0.02 for 2 %"),
        ({"kernels[0].discrepancy_relative_sd": "5"}, "kernels[0] (dgemm): discrepancy_relative_sd is 5; it is a"),
        (
            {"kernels[0].discrepancy_relative_sd": "5", "archive_id": "abc"},
            "kernels[0] (dgemm): discrepancy_relative_sd is 5; the calibration was disturbed or too short",
        ),
        ({"kernels[0].pieces[1].noise.sd": "{mnk: 5e-9}", "archive_id": "abc"}, "its noise has 50.4 times its mean"),
        ({"kernels[0].pieces[1].noise.sd": "{mnk: 5e-9}"}, "its noise has 50.4 times its mean"),
        ({"kernels": "[{kernel: dgemv, pieces: [{mean: {mn: 8e9}}]}]"}, "kernels[0] (dgemv): 8e+09 s an element"),
        ({"power": "{idle_W: 0.1, computing_W: 0.4, communicating_W: 0.3}"}, "power.computing_W is 0.4; a node draws"),
    ],
)
def test_a_value_that_no_machine_has_is_one_sentence_with_its_field(settings: dict[str, str], told: str) -> None:
    sentences = implausible(override(BASE, {"kernels[0].pieces[1].covariance": "null"} | settings))
    assert len(sentences) == 1, sentences
    assert told in sentences[0]


def test_check_tells_what_is_implausible_and_which_kernels_cost_nothing(tmp_path, capsys, output_of):
    file = tmp_path / "p.yaml"
    file.write_text(SMALL.read_text().replace("latency_s: 1.2e-06", "latency_s: 1.5"))
    assert main(["platform", "check", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{file}: valid, but HPL would be predicted too fast: ")
    assert " kernels that it calls have no model and count as 0 s" in printed.out
    assert "1 caveat: kernels: HPL calls some that have no model, and cost nothing; --details" in printed.out
    assert "warning: network.remote.segments[0].latency_s is 1.5 s" in printed.err
    assert "HPL calls some that have no model, and cost nothing: daxpy, dcopy, dgemv" in output_of(
        "platform", "check", file, "--details"
    )


MANY = Path(__file__).parents[1].joinpath("data", "texts", "many_mistakes.yaml").read_text()


def test_all_faults_of_a_file_are_told_in_one_go_each_with_its_line(tmp_path, capsys):
    file = tmp_path / "many.yaml"
    file.write_text(MANY.lstrip())
    assert main(["platform", "check", str(file)]) == 2
    lines = [line.removeprefix(f"lepaute: {file}:") for line in capsys.readouterr().err.splitlines()]
    expected = [
        "2: nme is not a field of the format (did you mean name?)",
        "7: kernels[2].pieces[0].mean.xy is not a term",
        "8: kernels[3].pieces[0].where is set, but the last piece must cover all remaining sizes",
        "10: network.node_link.bandwidth_Bps is '100Gb'",
        "12: network.remote.segments[0].latency_s is -1; a latency must be >= 0",
        "14: power.computing_W is 50; a busy node draws no less power than an idle one",
        # rules about several fields, which pydantic checks only where each is right by itself
        "6: kernels[1] is a second model of dgemm for 1 threads",
        "13: topology.parameters is for 9 nodes; nodes.count is 2",
    ]
    for start in expected:
        assert any(line.startswith(start) for line in lines), (start, lines)
    assert len(lines) == len(expected) + 1  # and that name is missing


def test_other_commands_tell_the_first_fault_and_how_many_more_there_are(tmp_path, refusal_of):
    file = tmp_path / "many.yaml"
    file.write_text(MANY.lstrip())
    assert refusal_of("platform", "show", file).endswith("(8 more faults: lepaute platform check lists them)\n")


OPTIONS = {
    "--nodes": "16", "--cores": "2x24", "--dgemm": "45G", "--link": "100Gb", "--latency": "1.5us",
    "--fat-tree": "2:1", "--memory": "192G", "--memory-bandwidth": "200GB",
}  # fmt: skip


def sheet(**changed: object) -> Platform:
    given: dict[str, object] = {
        "nodes": 2, "sockets": 2, "cores_per_socket": 4, "dgemm_flops": 45e9, "link_Bps": 1.25e10,
    }  # fmt: skip
    return platform_from(DataSheet(**(given | changed)), load_platform("dahu"))  # type: ignore[arg-type]


def made(tmp_path: Path, **changed: str | None) -> tuple[int, Path]:
    options = OPTIONS | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    words = [word for name, value in options.items() if value is not None for word in (name, value) if word]
    file = tmp_path / "mine.yaml"
    return main(["platform", "new", *words, "-o", str(file)]), file


def test_the_command_of_the_docs_writes_a_platform_that_is_complete(tmp_path, capsys):
    status, file = made(tmp_path)
    assert status == 0
    printed = capsys.readouterr()
    assert "platform mine: 16 nodes of 48 cores, 45.00 Gflop/s a core in dgemm\n" in printed.out
    assert "given          16 nodes of 2 x 24 cores, a fat tree of 2 leaf switches with 8 nodes and 4 " in printed.out
    # what was understood, in the units in which a slip of a unit shows
    assert (
        "dgemm 45.00 Gflop/s a core (2160 Gflop/s a node, 34.56 Tflop/s in all), link 12.5 GB/s (100 Gb/s)"
        in printed.out
    )
    assert "not measured; the least certain: all other kernels (sd 65 %)" in printed.out
    assert made(tmp_path, details="", force="")[0] == 0
    details = capsys.readouterr().out
    assert "all other kernels (sd 65 %): those of a core of dahu-2020-01, scaled by dgemm" in details
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
    assert len(platform.assumed) == 7
    warnings = predict(Hpl(n=256, nb=64, p=2, q=1), platform, runs=1).warnings
    told = next(warning for warning in warnings if warning.startswith("assumed, not measured: "))
    assert "dgemm at 45 Gflop/s a core (sd 5.0 %), all other kernels (sd 65 %)" in told
    assert not any("call noise only" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("given", "share", "own_sd", "others"),
    [
        ({}, 0.9, 0.13, 1),  # HPL's own loops, and memory: one core of the rank
        ({"blas": "openblas"}, 0.78, 0.19, 1),
        ({"blas": "mkl"}, 0.98, 0.03, 5),  # Intel's HPL: what a socket's memory gives more than one core draws
        ({"blas": "blis", "dgemm_flops": None, "peak_flops": 60e9}, 1.0, 0.05, 1),
        ({"blas": "none", "dgemm_flops": None, "peak_flops": 60e9}, 0.9, 0.13, 1),
    ],
)
def test_ranks_of_several_threads_have_the_dgemm_of_so_many_cores_and_an_error_of_their_own(
    given, share, own_sd, others
) -> None:
    platform = sheet(threads=8, cores_per_socket=8, **given)
    one, eight = (models_of(platform.kernels, KERNELS, threads) for threads in (1, 8))
    faster = dict.fromkeys(("dgemm", "dgemm_nn", "dtrsm", "dtrsm_left"), 8 * share)
    for kernel in (*faster, "dlaswp01T", "dgemv", "dlacpy"):
        factor = faster.get(kernel, others)
        assert mean_s(one[kernel], *UPDATE) == pytest.approx(factor * mean_s(eight[kernel], *UPDATE), rel=1e-5)
        more = own_sd if kernel in faster else 0.5 if others > 1 else 0.0
        both = math.hypot(one[kernel].discrepancy_relative_sd, more)
        assert eight[kernel].discrepancy_relative_sd == pytest.approx(both, abs=1e-4)
    assert "8 threads a rank" in {assumption.what for assumption in platform.assumed or ()}
    times = [predict(Hpl(n=2048, nb=64, p=2, q=1, threads_per_rank=t), platform, runs=1).time_s.mean for t in (1, 8)]
    assert 1.5 < times[0] / times[1] < 8.0


def test_shares_of_the_peak_are_the_fit_to_published_dgemm_and_their_errors_those_of_one_more_machine() -> None:
    table = pandas.read_csv(Path(__file__).parents[1] / "data" / "published_dgemm.csv")
    for clock, rows in table.groupby("clock"):
        share = np.log(rows["dgemm_gflops"] / rows["peak_gflops"])
        columns = [name for name in ("mkl", "openblas", "blis") if (rows["library"] == name).any()]
        design = np.column_stack([rows["library"] == name for name in columns] + [rows["simd"] == "avx512"])
        if clock == "turbo":  # that of the instructions: they cost nothing more
            design = design[:, :-1]
        design = design.astype(float)
        values, squares, *_ = np.linalg.lstsq(design, share, rcond=None)
        variance = squares[0] / (len(share) - design.shape[1])
        for place, name in enumerate(columns):
            for counted in ("base", "avx512") if clock == "base" else ("turbo",):
                at = np.zeros(design.shape[1])
                at[place] = 1.0
                at[-1] += counted == "avx512"
                sd = np.sqrt(variance * (1.0 + at @ np.linalg.solve(design.T @ design, at)))
                assert SHARES[name][counted] == pytest.approx((np.exp(at @ values), sd), abs=0.0075)
    assert SHARES["aocl"] == SHARES["blis"]


@pytest.mark.parametrize(
    ("given", "share", "relative_sd"),
    [
        ({}, 0.75, 0.2),
        ({"blas": "mkl"}, 1.0, 0.16),
        ({"blas": "mkl", "simd": "avx512"}, 0.69, 0.15),
        ({"simd": "avx512", "clock": "turbo"}, 0.82, 0.1),
        ({"blas": "none", "simd": "neon"}, 0.1, 0.72),
    ],
)
def test_the_middle_of_what_runs_draw_for_dgemm_is_the_share_of_the_peak(given, share, relative_sd) -> None:
    platform = sheet(dgemm_flops=None, peak_flops=60e9, **given)
    assert platform.kernel("dgemm").discrepancy_relative_sd == relative_sd
    middle = 1.0 if not given else np.exp(0.5 * relative_sd**2)
    assert dgemm_rate(platform) * middle == pytest.approx(share * 60e9, rel=1e-6)


def test_cores_whose_library_is_not_tuned_are_slow_in_what_that_library_does_only() -> None:
    known, none = (sheet(dgemm_flops=None, peak_flops=60e9, simd="neon", blas=blas) for blas in (None, "none"))
    slower = {
        model.kernel: mean_s(none.kernel(model.kernel), *UPDATE) / mean_s(model, *UPDATE) for model in known.kernels
    }  # type: ignore[arg-type]
    expected = dgemm_rate(known) / dgemm_rate(none)  # type: ignore[operator]
    assert {name for name, factor in slower.items() if factor > 2.0} == {"dgemm", "dtrsm", "dtrsm_left"}
    assert (slower["dgemm"], slower["dlaswp01T"]) == (pytest.approx(expected, rel=1e-5), 1.0)


@pytest.mark.parametrize(
    ("nominal", "latency_s", "fabric", "is_ethernet"),
    [
        ("100Gb", 1.5e-6, None, False), ("100Gb", 30e-6, None, True), ("10Gb", 1.5e-6, None, False),
        ("10Gb", None, None, True), ("25Gb", None, None, True), ("100Gb", None, None, False),
        ("100Gb", None, "ethernet", True), ("10Gb", 30e-6, "rdma", False),
    ],
)  # fmt: skip
def test_latency_and_bandwidth_tell_ethernet_unless_it_is_given(nominal, latency_s, fabric, is_ethernet) -> None:
    assert Link(bandwidth_of(nominal, "--link"), latency_s, fabric).is_ethernet == is_ethernet


def test_over_ethernet_headers_and_the_work_of_one_flow_limit_the_bandwidth() -> None:
    slow, fast = (sheet(link_Bps=gigabits * 1.25e8, fabric="ethernet").network for gigabits in (1, 100))
    for network, flow_Bps in ((slow, 1.25e8 * 1460 / 1538), (fast, 0.72e9)):
        assert {segment.bandwidth_Bps for segment in network.remote.segments} == {flow_Bps}
    assert fast.node_link.bandwidth_Bps == 1.25e10 * 1460 / 1538
    small, frames, long = fast.remote.segments
    totals = [each.send[0] + each.latency_s + each.receive[0] for each in (small, frames, long)]
    assert totals == pytest.approx([21e-6, 2.7 * 21e-6, 6 * 21e-6])
    assert fast.remote.discrepancy_relative_sd == 0.6
    assert sheet(latency_s=30e-6).network.remote.discrepancy_relative_sd == 0.4


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"dgemm": None, "peak": "2.15T"}, "nodes.peak_flops_per_core is 2.15e+12 flop/s, of one core: 103 Tflop/s"),
        ({"dgemm": "2.15T"}, "(dgemm): dgemm(4096, 4096, 128) at 2.15e+12 flop/s a core; is that of a node, or of a"),
        ({"latency": "1.5ms"}, "latency_s is 0.009 s; up to 1e-03 s are usual"),
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


def test_a_prediction_tells_the_interval_of_the_share_of_the_peak_and_the_share_of_the_memory(tmp_path, output_of):
    _, file = made(tmp_path, dgemm=None, peak="60G")
    problem = ("--n", "8k", "--nb", "128", "--grid", "2x2", "--runs", "3")
    text = output_of("predict", "hpl", "-p", file, *problem, "--details")
    # peak of four cores; 8 * 8000^2 bytes of 192 GiB
    (peak,) = re.findall(r"peak +([0-9.]+) % \(95 %: ([0-9.]+) to ([0-9.]+) %\) of 240.0 Gflop/s", text)
    assert float(peak[1]) < float(peak[0]) < float(peak[2])
    assert re.search(r"memory +0\.512\d* GB needed of 206\.2 GB on 1 node, 0\.25 %", text)


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
        ({"simd": "avx2"}, "--simd and --clock say what a nominal --peak counts; give it, or leave them out"),
        ({"blas": "atlas"}, "blas is 'atlas'; it must be one of mkl, openblas, blis, aocl, none"),
        ({"threads_per_rank": "49"}, "--threads-per-rank is 49; a node has 48 cores"),
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
