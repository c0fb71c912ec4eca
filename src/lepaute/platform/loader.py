"""YAML as platform files have it: numbers such as 1e-9 are numbers, and no key comes twice."""

from collections.abc import Hashable
from typing import Any

import yaml

# The C parser is several times faster; PyYAML may have been built without it.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlatformLoader(_SafeLoader):  # type: ignore[misc]  # the C loader has no type
    """A safe loader that refuses a key that comes twice in one mapping; PyYAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of `node`.  Raises yaml.YAMLError at the line of a repeated key."""
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                problem = f"key {key.value} comes twice"
                raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
            seen.add(key.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping
