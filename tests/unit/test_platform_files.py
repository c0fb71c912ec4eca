"""Platform files: what is read, what is refused and in which words, what is written."""

from pathlib import Path

import jsonschema
import pytest

from lepaute.errors import InputError, PlatformError
from lepaute.simulate.platform.io import load_platform, override, parse_platform, shipped_names
from lepaute.simulate.platform.schema import json_schema, platform_text

DATA = Path(__file__).parent.parent / "data" / "platforms"
SMALL = DATA / "small.yaml"
BAD = sorted((DATA / "bad").glob("*.yaml"))


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_file_is_refused_in_the_words_that_its_first_line_gives(path: Path) -> None:
    expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    with pytest.raises(PlatformError) as caught:
        load_platform(path)
    assert str(caught.value).replace(str(path), path.name) == expected


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


def test_a_kernel_is_found_by_name_and_threads() -> None:
    small = load_platform(SMALL)
    assert small.kernel("dgemm") is small.kernels[0]
    assert small.kernel("dgemm", threads=2) is None
    assert small.kernel("dtrsm") is None


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


def test_a_mistyped_name_gets_the_nearest_one_and_the_list() -> None:
    with pytest.raises(PlatformError) as caught:
        load_platform("dahu-2020-1")
    assert "no file is named 'dahu-2020-1' (did you mean dahu-2020-01?); shipped platforms: dahu, dahu-2019-04," in str(
        caught.value
    )


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


@pytest.mark.parametrize("name", shipped_names())
def test_the_json_schema_names_every_field_of_the_shipped_files(name: str) -> None:
    jsonschema.validate(load_platform(name).model_dump(mode="json"), json_schema())
