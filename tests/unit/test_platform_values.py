"""Values of a platform: dataclasses that Pydantic checks."""

import copy
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Annotated, Literal

import pytest
from annotated_types import Ge
from pydantic import BaseModel, ValidationError

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
