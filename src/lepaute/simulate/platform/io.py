"""Platforms as files: load by name or path, write, change a field."""

import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lepaute.errors import InputError, LepauteError, PlatformError
from lepaute.kit.builds import cache_folder, drop_oldest, make_cache
from lepaute.kit.documents import guess, read_text, read_yaml
from lepaute.kit.files import is_file, write_atomic
from lepaute.kit.later import later
from lepaute.kit.numbers import of_type, path_of, plain
from lepaute.simulate.platform.schema import Platform
from lepaute.simulate.platform.values import MAX_NODES, Value
from lepaute.version import __version__

if TYPE_CHECKING:
    from lepaute.simulate.platform import group_settings
else:
    group_settings = later("lepaute.simulate.platform.group_settings")

SHIPPED_FOLDER = Path(__file__).resolve().parent.parent / "platforms"
#: Names that stand for a shipped platform.
ALIASES: Mapping[str, str] = {"dahu": "dahu-2020-01"}


def shipped_names() -> list[str]:
    """The names that `load_platform` knows without a file, aliases among them, in alphabetical order."""
    return sorted([path.stem for path in SHIPPED_FOLDER.glob("*.yaml")] + list(ALIASES))


def load_platform(name_or_path: "str | Path | Platform") -> Platform:
    """The platform of a shipped name or of a file.

    Parameters
    ----------
    name_or_path : a text with a slash or ending in .yaml or .yml is a path; any other is a shipped name first, then a
        path; a `Platform` is returned as it is

    Raises
    ------
    PlatformError : one line: file, line, what is wrong, what to do

    Examples
    --------
    >>> import lepaute as lp
    >>> lp.load_platform("dahu").nodes.cores
    32
    """
    if isinstance(name_or_path, Platform):
        return name_or_path
    path, name = path_of(name_or_path, "the platform"), str(name_or_path)
    if isinstance(name_or_path, str) and os.sep not in name and not name.endswith((".yaml", ".yml")):
        shipped = SHIPPED_FOLDER / f"{ALIASES.get(name, name)}.yaml"
        if is_file(shipped):
            path = shipped
        elif not is_file(name):
            names = shipped_names()
            shown = f"{guess(name, names)}; shipped platforms: {', '.join(names)}"
            raise PlatformError(f"no shipped platform and no file is named '{name}'{shown}")
    try:
        text = read_text(path, "a platform file")
    except InputError as error:
        raise PlatformError(str(error)) from None
    return _checked_once(text, str(path))


def parse_platform(text: str, origin: str = "platform") -> Platform:
    """The platform in the YAML `text`; `origin` is its name in messages.  Raises PlatformError."""
    try:
        content = read_yaml(text, origin)
    except InputError as error:
        raise PlatformError(str(error)) from None
    return _validated(content, text, origin)


def override(platform: "Platform | str | Path", settings: Mapping[str, str | float]) -> Platform:
    """`platform` with other values of fields, and knobs turned.

    Parameters
    ----------
    platform : as `load_platform` takes it; it stays as it is
    settings : values by field, {"network.flow_factor": "scale", "kernels[0].threads": 2}, and by knob,
        {"scale.bandwidth": 2} (docs/concepts/studies.md), which turn what the fields have made; texts are YAML

    Returns
    -------
    Another platform, with a digest of its own

    Raises
    ------
    InputError : a field that is not there
    PlatformError : a value that cannot be

    Examples
    --------
    >>> import lepaute as lp
    >>> lp.override(lp.load_platform("dahu"), {"nodes.count": 4}).nodes.count
    4
    """
    from lepaute.simulate.platform.components import KNOBS, with_components

    platform = load_platform(platform)
    values = {field: read_yaml(setting_text(field, value), f"--set {field}") for field, value in settings.items()}
    knobs = {field: values.pop(field) for field in settings if field.startswith(KNOBS)}
    return with_components(with_values(platform, values) if values else platform, knobs)


def setting_text(field: str, value: object) -> str:
    """The value of a setting as `--set` has it, of a text or a number."""
    value = plain(value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(of_type(value, f"settings[{field!r}]", (str, int, float), "a text or a number"))


def with_values(platform: Platform, values: Mapping[str, Any]) -> Platform:
    """`platform` with the values of fields replaced by others, such as YAML has them.

    With another nodes.count, tables of single nodes and the topology follow (`components.resized`).
    Raises InputError for a field that is not there, PlatformError for a value that cannot be.
    """
    if platform.groups is not None:
        platform, values = group_settings.group_settings(platform, values)
    nodes = values.get("nodes.count")
    if isinstance(nodes, int) and not isinstance(nodes, bool) and 1 <= nodes <= MAX_NODES:
        from lepaute.simulate.platform.components import resized

        platform = resized(platform, nodes, topology=not any(field.startswith("topology") for field in values))
    content = platform.model_dump()
    if platform.population is None and any(field.startswith("population.") for field in values):
        from lepaute.simulate.platform.population import shipped_population

        # What is shipped for this platform beside its file; it draws nothing yet.
        shipped = shipped_population(platform.name)
        content["population"] = shipped and _of_as_many(shipped | {"draw": "none"}, platform)
    for field, value in values.items():
        _replace(content, field, value)
    settings = ", ".join(f"{field}={str(value)[:80]}" for field, value in values.items())
    return _validated(content, None, f"{platform.name} with {settings[:300]}")


def with_population(platform: Platform, population: Mapping[str, Any]) -> Platform:
    """`platform` with the content of another section `population`.

    The groups of its nodes, and the factors of its CPUs, are dropped where there are not as many.
    Raises PlatformError if the two do not fit together.
    """
    content = platform.model_dump() | {"population": _of_as_many(dict(population), platform)}
    return _validated(content, None, platform.name)


def _of_as_many(population: dict[str, Any], platform: Platform) -> dict[str, Any]:
    """A population without what it says of single nodes and CPUs of a platform that has another number of them."""
    counts = {"group_of_node": platform.nodes.count, "scale_of_cpu": platform.nodes.count * platform.nodes.cpus}
    return population | {name: None for name, count in counts.items() if len(population.get(name) or ()) != count}


def _validated(content: object, text: str | None, origin: str) -> Platform:
    """The platform of plain values that were read from `text` (None: from no file)."""
    from pydantic import ValidationError

    try:
        return Platform.model_validate(content)
    except ValidationError as error:
        from lepaute.simulate.platform.faults import described

        raise described(error, content, text, origin) from None


def _replace(content: Any, field: str, value: object) -> None:
    words = field.replace("[", ".[").removeprefix(".").split(".")
    keys = [int(word[1:-1]) if re.fullmatch(r"\[\d+\]", word) else word for word in words]
    inside = content
    for depth, key in enumerate(keys):
        known = isinstance(inside, dict) and key in inside
        known = known or (isinstance(inside, list) and isinstance(key, int) and key < len(inside))
        if not known:
            from lepaute.simulate.platform.faults import unknown_field

            raise InputError(unknown_field(keys[: depth + 1], inside))
        if depth == len(keys) - 1:
            inside[key] = value
            return
        if isinstance(inside[key], tuple):
            inside[key] = list(inside[key])
        inside = inside[key]


#: The oldest of more are removed.
MAX_KEPT = 64


def _checked_once(text: str, origin: str) -> Platform:
    """`parse_platform`, kept in the cache by a digest of text, sources and Python's version, with its own digest."""
    key = hashlib.sha256(f"{_sources()}\n{text}".encode()).hexdigest()[:32]
    with contextlib.suppress(LepauteError, OSError, ValueError):
        return _read(cache_folder() / "platforms" / f"{key}.json")
    platform = parse_platform(text, origin)
    with contextlib.suppress(LepauteError, OSError):
        _keep(cache_folder() / "platforms", key, platform)
    return platform


@cache
def _sources() -> str:
    """Version, and names, sizes and dates of the modules that check: to read these would take as long as a platform."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return repr((__version__, sys.version_info, stats))


#: The member, of a part's JSON object, that names its class; the others are its fields.
_CLASS = "class"


def _read(path: Path) -> Platform:
    """Raises an error where it is not there, or damaged."""
    digest, _, content = path.read_text(encoding="utf-8").partition("\n")
    if hashlib.sha256(content.encode()).hexdigest() != digest:
        raise ValueError(f"{path} is damaged")
    parts = [Value]
    for part in parts:
        parts += part.__subclasses__()
    classes = {part.__name__: part for part in parts}

    def read_object(members: dict[str, Any]) -> Any:
        members = {name: _with_tuples(value) for name, value in members.items()}
        cls = members.pop(_CLASS, None)
        return members if cls is None else classes[cls].model_construct(**members)

    sha256, platform = json.loads(content, object_hook=read_object)
    vars(platform)["sha256"] = sha256
    return cast(Platform, platform)


def _keep(folder: Path, key: str, platform: Platform) -> None:
    def members(part: Value) -> dict[str, Any]:
        return {_CLASS: type(part).__name__} | {field.name: getattr(part, field.name) for field in fields(part)}

    make_cache(folder)
    content = json.dumps((platform.sha256, platform), default=members)
    write_atomic(folder / f"{key}.json", f"{hashlib.sha256(content.encode()).hexdigest()}\n{content}")
    drop_oldest(folder, "*.json", MAX_KEPT)


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
