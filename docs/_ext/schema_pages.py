"""Pages of the file formats that a Pydantic model describes, and their JSON Schemas as files."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markdown_text import Pages, escaped, table

from lepaute.measure.node_test import Parameters as NodeTestParameters
from lepaute.measure.shipped.memory import Parameters as MemoryParameters
from lepaute.platform.schema import json_schema as platform_schema
from lepaute.study.schema import json_schema as study_schema
from lepaute.watch.foreign.mapping import Mapping as MappingFile


@dataclass(frozen=True)
class Format:
    """A file: name of its page, title, what it is, and how its schema is made."""

    name: str
    title: str
    what: str
    schema: Callable[[], dict[str, Any]]


FORMATS = (
    Format(
        "platform",
        "Platform file",
        "A machine, in YAML: what `lepaute calibrate`, `fit` and `platform new` write, and every `-p` reads."
        " `lepaute platform check FILE` says which line breaks it.",
        platform_schema,
    ),
    Format(
        "study",
        "Study file",
        "A question that takes many simulations, in YAML, for `lepaute study`. `lepaute study schema` prints the"
        " schema, `lepaute study check FILE` says which line breaks it.",
        study_schema,
    ),
    Format(
        "mapping",
        "Mapping of columns",
        "Which column of another program's CSV says what, in YAML, for `lepaute watch ingest --mapping`.",
        MappingFile.model_json_schema,
    ),
    Format(
        "memory_parameters",
        "Parameters of `lepaute run memory`",
        "What `--set NAME=VALUE` of `lepaute run memory` takes.",
        MemoryParameters.model_json_schema,
    ),
    Format(
        "node_test_parameters",
        "Parameters of `lepaute run node-test`",
        "What `--set NAME=VALUE` of the node test takes.",
        NodeTestParameters.model_json_schema,
    ),
)


def schema_pages() -> Pages:
    """The pages below `formats/`, and beside each the schema itself."""
    pages = {"formats/index.md": "\n".join(_index())}
    for one in FORMATS:
        schema = one.schema()
        pages[f"formats/{one.name}.schema.json"] = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        pages[f"formats/{one.name}.md"] = "\n".join(_page(one, schema))
    return pages


def _index() -> Iterator[str]:
    yield from (
        "# Schemas of files",
        "",
        "Files that people write, each with its fields and its JSON Schema (2020-12).",
        "",
    )
    yield from table(("file", "what it is"), [(f"[{one.title}]({one.name}.md)", one.what) for one in FORMATS])
    yield from ("```{toctree}", ":hidden:", "", *(one.name for one in FORMATS), "```", "")


def _page(one: Format, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {one.title}", "", one.what, "")
    yield from (f"The schema, for editors and validators: [`{one.name}.schema.json`]({one.name}.schema.json).", "")
    yield from ("## Top level", "", *_object(schema, described=False))
    for name, below in sorted(schema.get("$defs", {}).items()):
        yield from (f"(schema-{one.name}-{name.lower()})=", f"## {escaped(name)}", "", *_object(below))


def _object(schema: Mapping[str, Any], *, described: bool = True) -> Iterator[str]:
    if described and (text := schema.get("description")):
        yield from (escaped(" ".join(text.split("\n\n")[0].split())), "")
    if "properties" not in schema:
        yield from (f"One of: {_type(schema)}." if "enum" in schema or "anyOf" in schema else _type(schema), "")
        return
    required = schema.get("required", ())
    for field, below in schema["properties"].items():
        facts = [_type(below)]
        if field in required:
            facts.append("**required**")
        elif "default" in below:
            facts.append(f"default `{json.dumps(below['default'], ensure_ascii=False)}`")
        facts += [f"{word} {below[key]}" for key, word in _BOUNDS.items() if key in below]
        told = f". {escaped(' '.join(below['description'].split()))}" if "description" in below else ""
        yield from (f"`{field}`", f": {', '.join(facts)}{told}", "")


_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}
_NAMES = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true or false", "null": "null"}


def _type(schema: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if "$ref" in schema:
        return f"*{schema['$ref'].rpartition('/')[2]}*"
    if "const" in schema:
        return f"`{json.dumps(schema['const'], ensure_ascii=False)}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(one, ensure_ascii=False)}`" for one in schema["enum"])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[key]))
    if schema.get("type") == "array":
        items = schema.get("items") or next(iter(schema.get("prefixItems", ())), {})
        return f"list of {_type(items)}" if items else "list"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"mapping of names to {_type(values)}" if isinstance(values, dict) else "mapping"
    return _NAMES.get(schema.get("type", ""), "any value")
