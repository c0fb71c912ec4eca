"""Documents that Pydantic checks: records, which are plain, do what models of it do."""

import copy
import pickle
from typing import Annotated, Any, Literal, Self

import pytest
from pydantic import BaseModel, ValidationError

from lepaute.kit.models import AfterValidator, ConfigDict, Field, Record, model_validator, packed, unpacked
from lepaute.simulate.platform.values import fault


def _even(value: int) -> int:
    if value % 2:
        raise fault("is odd")
    return value


class Base(Record):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    size: Annotated[int, Field(ge=0), AfterValidator(_even)] = 2


class Leaf(Base):
    """With an own field, a default made anew, and a rule about several."""

    kind: Literal["a", "b"] = "a"
    table: dict[str, float] = Field(default_factory=dict)

    @property
    def double(self) -> int:
        return 2 * self.size

    @model_validator(mode="after")
    def _of_a_kind(self) -> Self:
        if self.kind == "b" and self.double < 8:
            raise fault(f"is {self.size}", "size")
        return self


class Tree(Record):
    leaf: Leaf
    others: tuple[Leaf, ...] = ()
    either: Leaf | None = None
    usual: Leaf = Leaf.model_construct(size=4)

    @model_validator(mode="before")
    @classmethod
    def _of_a_number(cls, content: Any) -> Any:
        return {"leaf": {"size": content}} if isinstance(content, int) else content


def test_a_value_is_checked_as_it_is_made_and_has_plain_parts() -> None:
    tree = Tree.model_validate({"leaf": {"size": 4, "table": {"x": 1}}, "others": [{}, {"kind": "b", "size": 6}]})
    assert (type(tree), type(tree.leaf), type(tree.others[1]), type(tree.usual)) == (Tree, Leaf, Leaf, Leaf)
    assert (tree.leaf.size, tree.leaf.double, tree.leaf.table, tree.usual.size) == (4, 8, {"x": 1.0}, 4)
    assert not isinstance(tree, BaseModel)
    assert Tree.model_validate(8).leaf == Leaf(size=8)
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
    with pytest.raises(ValueError, match="frozen"):
        tree.leaf = Leaf()  # type: ignore[misc]
    other = tree.model_copy(update={"leaf": Leaf()})
    assert (tree.leaf.size, other.leaf.size, other.usual) == (6, 2, tree.usual)
    assert tree == copy.deepcopy(tree) == pickle.loads(pickle.dumps(tree)) != other
    assert hash(Base()) == hash(Base(size=2)) != hash(Base(size=4))
    assert Base() != Leaf()
    assert repr(Leaf(size=6)) == "Leaf(size=6, kind='a', table={})"
    assert dict(Base(size=6)) == {"size": 6}
    assert Leaf.model_construct().table is not Leaf.model_construct().table


def test_dumps_and_schemas_are_those_of_pydantic() -> None:

    tree = Tree(leaf=Leaf(size=6))
    leaf = {"size": 6, "kind": "a", "table": {}}
    assert tree.model_dump() == {"leaf": leaf, "others": (), "either": None, "usual": leaf | {"size": 4}}
    assert tree.model_dump(mode="json", exclude_none=True)["others"] == []
    assert tree.model_dump(exclude_defaults=True) == {"leaf": {"size": 6}}
    assert list(Tree.model_fields) == ["leaf", "others", "either", "usual"]
    assert Tree.model_json_schema()["$defs"]["Leaf"]["properties"]["size"] == {
        "default": 2, "minimum": 0, "title": "Size", "type": "integer",
    }  # fmt: skip

    class Holder(BaseModel):
        tree: Tree

    assert Holder.model_validate({"tree": {"leaf": {"size": 6}}}).tree == tree
    assert "Leaf" in Holder.model_json_schema()["$defs"]


def test_what_is_packed_comes_back() -> None:
    tree = Tree(leaf=Leaf(size=6, table={"x": 0.1}), others=(Leaf(),))
    assert unpacked(packed(tree), {"Tree": Tree, "Leaf": Leaf}) == tree
