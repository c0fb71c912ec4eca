"""What messages about a refused YAML file share: the line of a value, its path as people write it, near names.

A file is parsed once more to find the line, so this is for files that have been refused.
"""

import types
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

if TYPE_CHECKING:
    import yaml

#: Keys and positions that lead from the document to a value.
Path = tuple[str | int, ...]


def composed(text: str) -> "yaml.Node | None":
    """The nodes of a text that `read_yaml` has read, with their positions."""
    import yaml

    root: yaml.Node | None = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return root


def line_in(path: Path, root: "yaml.Node") -> int:
    """The line, from 1, of the key (or element) that `path` leads to, or of the deepest part of it that is there."""
    import yaml

    node = root
    line = node.start_mark.line
    for step in path:
        if isinstance(node, yaml.MappingNode):
            entries = [(key, value) for key, value in node.value if key.value == str(step)]
            if not entries:
                break
            line, node = entries[-1][0].start_mark.line, entries[-1][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
        else:
            break
    return int(line) + 1


def spoken(path: Path) -> str:
    """nodes.list[3].name, or "the file" where the path is empty."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return words.removeprefix(".") or "the file"


def shown(value: object) -> str:
    """A value as a message quotes it."""
    if isinstance(value, str):
        try:
            return f"{float(value)!r}"  # YAML 1.1 reads 1e6, for want of a dot and a sign, as a text
        except ValueError:
            pass
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def guess(word: str, known: Sequence[str]) -> str:
    """ " (did you mean nodes?)", where one of the names is near."""
    near = get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def fields_at(model: Any, path: Path) -> list[str]:
    """The names of the fields of the value that `path` leads to in a document of this Pydantic model."""
    inside: Any = model
    for step in path:
        if isinstance(step, int) or inside is None:
            continue  # an element of a list has the model that the list's annotation names
        field = inside.model_fields.get(step)
        inside = None if field is None else _model_in(field.annotation)
    return [] if inside is None else list(inside.model_fields)


def _model_in(annotation: Any) -> Any:
    """The model class inside `X | None`, `tuple[X, ...]`, `Annotated[X, ...]`; None where there is none."""
    if isinstance(annotation, type) and not get_args(annotation):
        from pydantic import BaseModel

        return annotation if issubclass(annotation, BaseModel) else None
    if get_origin(annotation) in (tuple, Union, types.UnionType, Annotated):
        return next((model for part in get_args(annotation) if (model := _model_in(part)) is not None), None)
    return None
