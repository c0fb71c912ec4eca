"""Platform files: what is read, what is refused and in which words, what is written."""

import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from lepaute.errors import InputError, PlatformError
from lepaute.simulate.platform import load_platform, override, shipped_names
from lepaute.simulate.platform.io import parse_platform, platform_text
from lepaute.simulate.platform.schema import json_schema

DATA = Path(__file__).parent.parent / "data" / "platforms"
SMALL = DATA / "small.yaml"
BAD = sorted((DATA / "bad").glob("*.yaml"))


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_file_is_refused_in_the_words_that_its_first_line_gives(path: Path) -> None:
    expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    with pytest.raises(PlatformError) as caught:
        load_platform(path)
    assert str(caught.value).replace(str(path), path.name) == expected


def test_there_are_bad_files() -> None:
    assert len(BAD) >= 43  # so that a wrong folder does not pass for "no bad file is accepted"


def test_numbers_without_a_dot_are_numbers_and_the_constant_term_needs_no_quotes() -> None:
    small = load_platform(SMALL)
    # written {mnk: 2e-10, 1: 1e-6}: PyYAML reads two texts and the integer 1
    assert small.kernels[0].pieces[0].mean == {"mnk": 2e-10, "1": 1e-6}
    assert small.network.remote.segments[1].latency_s == 5e-6


def test_what_is_left_out_has_the_stated_default() -> None:
    small = load_platform(SMALL)
    first = small.kernels[0].pieces[0]
    assert (first.noise.kind, first.noise.sd, first.covariance, first.per_cpu) == ("none", {}, None, None)
    assert small.network.flow_factor == "bound"
    assert small.network.costs.model_dump() == {
        "iprobe_s": 2e-7, "test_s": 0.0, "wtime_s": 0.0, "iprobe_looks_first": False,
    }  # fmt: skip
    assert small.topology.kind == "switch"
    assert small.network.remote.segments[0].receive == (0.0, 0.0)


def test_loopback_without_segments_has_those_between_nodes() -> None:
    network = load_platform(SMALL).network
    assert network.loopback.segments is None
    assert network.loopback_segments == network.remote.segments


def test_a_kernel_is_found_by_name_and_threads() -> None:
    small = load_platform(SMALL)
    assert small.kernel("dgemm") is small.kernels[0]
    assert small.kernel("dgemm", threads=2) is None
    assert small.kernel("dtrsm") is None


@pytest.mark.parametrize(("mapping", "expected"), [("modulo", [0, 1, 0, 1]), ("block", [0, 0, 1, 1])])
def test_cores_belong_to_cpus_by_modulo_or_in_blocks(mapping: str, expected: list[int]) -> None:
    nodes = override(load_platform(SMALL), {"nodes.cores": "4", "nodes.core_to_cpu": mapping}).nodes
    assert [nodes.cpu_of_core(core) for core in range(4)] == expected


def test_the_measured_blas_kernels_are_part_of_a_platform_and_of_its_digest() -> None:
    small = load_platform(SMALL)
    assert small.blas is None
    measured = override(small, {"blas": "{core: SkylakeX, coretype_env: SkylakeX}"})
    text = platform_text(measured)
    assert "\nblas: {core: SkylakeX, coretype_env: SkylakeX}\nnodes:" in text
    assert parse_platform(text) == measured
    assert measured.sha256 != small.sha256
    assert "coretype_env" not in platform_text(override(small, {"blas": "{core: Zen}"}))
    with pytest.raises(PlatformError, match="blas"):
        override(small, {"blas": "{coretype_env: Zen}"})


def test_a_shipped_name_is_found_before_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dahu").write_text("not a platform", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_platform("dahu").name == "dahu-2020-01"
    with pytest.raises(PlatformError, match="a platform is a mapping"):
        load_platform("./dahu")


def test_a_mistyped_name_gets_the_nearest_one_and_the_list() -> None:
    with pytest.raises(PlatformError) as caught:
        load_platform("dahu-2020-1")
    assert "no file is named 'dahu-2020-1' (did you mean dahu-2020-01?); shipped platforms: dahu, dahu-2019-04," in str(
        caught.value
    )


def test_a_folder_and_a_binary_file_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="cannot be read"):
        load_platform(tmp_path)
    binary = tmp_path / "platform.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlatformError, match="not UTF-8"):
        load_platform(binary)


def test_fields_can_be_replaced() -> None:
    small = load_platform(SMALL)
    changed = override(
        small, {"network.flow_factor": "scale", "network.remote.segments[0].latency_s": "3e-6", "days": "null"}
    )
    assert changed.network.flow_factor == "scale"
    assert changed.network.remote.segments[0].latency_s == 3e-6
    assert changed.days is None
    assert small.network.flow_factor == "bound"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("network.flow_facto", r"no field network.flow_facto \(did you mean flow_factor\?\); it has flow_factor,"),
        ("network.remote.segments[7].latency_s", r"no field network.remote.segments\[7\].*it has \[0\], \[1\]"),
        ("name.first", "no field name.first"),
        ("", "no field"),
    ],
)
def test_a_field_that_does_not_exist_cannot_be_replaced(field: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        override(load_platform(SMALL), {field: "1"})


@pytest.mark.parametrize(
    ("value", "message"), [("-1", "a latency must be >= 0"), ("1us", "plain finite number in seconds")]
)
def test_a_field_cannot_be_replaced_by_what_it_cannot_be(value: str, message: str) -> None:
    with pytest.raises(PlatformError, match=rf"^small with .*latency_s=.*: network.*{message}"):
        override(load_platform(SMALL), {"network.remote.segments[0].latency_s": value})


def test_a_value_that_is_not_yaml_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match=r"^--set name:2:1: is not YAML"):
        override(load_platform(SMALL), {"name": "[1"})


def test_a_platform_does_not_change() -> None:
    small = load_platform(SMALL)
    with pytest.raises(FrozenInstanceError):
        small.name = "other"  # type: ignore[misc]


def leaves(tree: object) -> list[object]:
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    if isinstance(tree, list):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]


def test_the_json_schema_names_every_field_of_the_shipped_files() -> None:
    schema = json.loads(json.dumps(json_schema()))
    for name in shipped_names():
        check_against(load_platform(name).model_dump(mode="json"), schema, schema["$defs"], name)


def check_against(value: object, schema: dict, definitions: dict, at: str) -> None:
    """A JSON Schema validator for the keywords that the schema of platforms has."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in schema:
        for choice in schema["anyOf"]:
            if choice.get("type") != "null" or value is None:
                return check_against(value, choice, definitions, at) if value is not None else None
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None)}
    if "type" in schema:
        kind = kinds[schema["type"]] if schema["type"] != "boolean" else bool
        assert isinstance(value, kind), f"{at} is {value!r}, not of type {schema['type']}"
    if "enum" in schema:
        assert value in schema["enum"], at
    if "const" in schema:
        assert value == schema["const"], at
    if isinstance(value, dict) and "properties" in schema:
        assert set(schema.get("required", ())) <= set(value), at
        assert set(value) <= set(schema["properties"]), f"{at}: {set(value) - set(schema['properties'])}"
        assert schema["additionalProperties"] is False, at
        for key, part in value.items():
            check_against(part, schema["properties"][key], definitions, f"{at}.{key}")
    if isinstance(value, list):
        parts = schema.get("prefixItems") or [schema["items"]] * len(value)
        for position, (part, kind_of_part) in enumerate(zip(value, parts, strict=True)):
            check_against(part, kind_of_part, definitions, f"{at}[{position}]")
    return None
