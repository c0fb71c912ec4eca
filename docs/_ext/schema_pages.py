"""Pages of the file formats that models, dataclasses or declared columns describe, and their JSON Schemas as files."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import declared_schemas as declared
from docstrings import entries
from markdown_text import Pages, escaped, table

from lepaute.measure.archive.metadata import Metadata
from lepaute.measure.experiment.options import Installation
from lepaute.measure.node_test import Parameters as NodeTestParameters
from lepaute.measure.shipped.memory import Parameters as MemoryParameters
from lepaute.measure.verify.campaign import RecordedRun
from lepaute.simulate.conditions import Transfer
from lepaute.simulate.platform.schema import json_schema as platform_schema
from lepaute.simulate.prediction.saved import Document
from lepaute.simulate.trace.table import TraceMetadata
from lepaute.study.capacity import Catalogue
from lepaute.study.schema import json_schema as study_schema
from lepaute.watch.foreign.mapping import Mapping as MappingFile
from lepaute.watch.store.folder import Index


@dataclass(frozen=True)
class Format:
    """A file: name of its page, title, what it is, and how its schema is made."""

    name: str
    title: str
    what: str
    schema: Callable[[], dict[str, Any]]


#: What people write.
GIVEN = (
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
        "catalogue",
        "Catalogue of parts",
        "What machines are put together of, in YAML: the `catalogue` of a study of capacity.",
        Catalogue.model_json_schema,
    ),
    Format(
        "transfer",
        "Transfer layer",
        "How far other studies were off, in YAML, for `--transfer` of `lepaute predict`, and for studies.",
        lambda: declared.schema_of(Transfer),
    ),
    Format(
        "installation",
        "Installation file",
        "Settings of a machine, in YAML, for `--install` of `lepaute run`.",
        lambda: declared.schema_of(Installation),
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

#: What Lepaute itself writes, and reads again.
WRITTEN = (
    Format(
        "prediction",
        "Prediction",
        "What `lepaute predict --json` prints of one prediction and `Prediction.to_json` writes; `lp.read_prediction`"
        " reads it. The rate and what applications add stand beside these members.",
        lambda: declared.schema_of(Document),
    ),
    Format(
        "real_runs",
        "Journal of real runs",
        "`runs.jsonl` in the folder of `lepaute verify`: a line a real run, with `predictions_sha256` besides.",
        lambda: declared.schema_of(RecordedRun),
    ),
    Format(
        "archive_metadata",
        "Metadata of an archive",
        "`metadata.json` of an archive, as `lepaute archive show --json` prints it.",
        lambda: declared.schema_of(Metadata),
    ),
    Format(
        "observations",
        "Tables of observations",
        "Columns of the Parquet tables in `observations/` of an archive. A column that is not here is kept, and changes"
        " nothing in a fit.",
        declared.observations,
    ),
    Format("trace", "Trace", "A row of a trace (Parquet).", declared.trace),
    Format(
        "trace_metadata",
        "Metadata of a trace",
        'The JSON object under `lepaute-trace` in the metadata of the Parquet file; `format` is "lepaute-trace/1".',
        lambda: declared.schema_of(TraceMetadata),
    ),
    Format("store", "Tables of a store", "Rows of the tables of a store, in a folder or a database.", declared.store),
    Format(
        "store_index",
        "Index of a store",
        "`store.json`: which files of a store in a folder count.",
        lambda: declared.schema_of(Index),
    ),
)
FORMATS = (*GIVEN, *WRITTEN)


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
        *_listed(GIVEN),
        "## Files that Lepaute writes",
        "",
        "and reads again, or leaves for other programs to read. Those in Parquet have the schema of a row.",
        "",
        *_listed(WRITTEN),
    )
    yield from ("```{toctree}", ":hidden:", "", *(one.name for one in FORMATS), "```", "")


def _listed(formats: Iterable[Format]) -> Iterator[str]:
    return table(("file", "what it is"), [(f"[{one.title}]({one.name}.md)", one.what) for one in formats])


def _page(one: Format, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {one.title}", "", one.what, "")
    yield from (f"The schema, for editors and validators: [`{one.name}.schema.json`]({one.name}.schema.json).", "")
    yield from ("## Top level", "", *_object(schema, described=False))
    for name, below in sorted(schema.get("$defs", {}).items()):
        yield from (f"(schema-{one.name}-{name.lower()})=", f"## {escaped(name)}", "", *_object(below))


def _object(schema: Mapping[str, Any], *, described: bool = True) -> Iterator[str]:
    if described and (text := schema.get("description")) and not entries(text.splitlines()[0]):
        yield from (escaped(" ".join(text.split("\n\n")[0].split())), "")
    if "properties" not in schema:
        yield from (f"One of: {_type(schema)}." if "enum" in schema or "anyOf" in schema else _type(schema), "")
        return
    required, of_class = schema.get("required", ()), entries(schema.get("description", ""))
    for field, below in schema["properties"].items():
        facts = [_type(below)]
        if field in required:
            facts.append("**required**")
        elif "default" in below:
            facts.append(f"default `{json.dumps(below['default'], ensure_ascii=False)}`")
        facts += [f"{word} {below[key]}" for key, word in _BOUNDS.items() if key in below]
        said = below.get("description") or of_class.get(field, "")
        told = f". {escaped(' '.join(said.split()))}" if said else ""
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
            return " or ".join(dict.fromkeys(word for one in schema[key] for word in _type(one).split(" or ")))
    if schema.get("type") == "array":
        items = schema.get("items") or next(iter(schema.get("prefixItems", ())), {})
        return f"list of {_type(items)}" if items else "list"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"mapping of names to {_type(values)}" if isinstance(values, dict) else "mapping"
    return _NAMES.get(schema.get("type", ""), "any value")
