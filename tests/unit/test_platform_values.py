"""Values of a platform, those that no machine has, and all faults of a file in one go."""

import copy
import pickle
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Ge
from pydantic import BaseModel, ValidationError

from lepaute.cli.main import main
from lepaute.simulate.platform import load_platform, override, shipped_names
from lepaute.simulate.platform.plausibility import implausible
from lepaute.simulate.platform.values import Check, Value, fault


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
COVARIANCE = {"kernels[0].pieces[1].covariance": "null"}


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
    sentences = implausible(override(BASE, COVARIANCE | settings))
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
