"""The YAML form of a platform: fields in the order of the format, a line for each row of numbers."""

from typing import Any

import yaml

from lepaute.platform.schema import Platform

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _PlatformDumper(_Dumper):  # type: ignore[misc]  # the C dumper has no type
    """Texts of several lines as literal blocks; all else as PyYAML does it."""


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_PlatformDumper.add_representer(str, _text)


def to_yaml(platform: Platform) -> str:
    """The YAML text of `platform`; fields that are null are left out.  Reading it back gives an equal platform."""
    content = platform.model_dump(mode="json", exclude_none=True)
    for model in content["kernels"]:
        for piece in model["pieces"]:
            if "per_cpu" in piece:
                # node and cpu (or socket) are numbers of things: 1, not 1.0
                piece["per_cpu"]["rows"] = [[int(row[0]), int(row[1]), *row[2:]] for row in piece["per_cpu"]["rows"]]
    # default_flow_style=None: collections of plain values on one line
    text: str = yaml.dump(
        content, Dumper=_PlatformDumper, sort_keys=False, default_flow_style=None, width=1000, allow_unicode=True
    )
    return text
