"""Equal digest, equal prediction to the last bit, whatever form a platform's content has and what is moved in it."""

import json
import random
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lepaute.errors import PlatformError
from lepaute.simulate import Hpl, predict
from lepaute.simulate.machine.population import on_its_day
from lepaute.simulate.platform.io import load_platform, parse_platform
from lepaute.simulate.platform.schema import Platform, platform_text

SMALL = Path(__file__).parent.parent / "data" / "platforms" / "small.yaml"
HPL = Hpl(n=400, nb=64, p=2, q=2)
MODES = [{"weight": 0.7, "mean": 0.0, "sd": 0.05}, {"weight": 0.3, "mean": 1.1, "sd": 0.1}]
POPULATION = {
    "terms": ["mnk", "1"],
    "draw": "nodes-and-days",
    "groups": [
        {"weight": 0.75, "mean": [1e-10, 2e-6], "covariance_spatial": [[1e-24, 0.0], [0.0, 4e-16]]},
        {"weight": 0.25, "mean": [2e-10, 2e-6], "covariance_spatial": [[1e-24, 0.0], [0.0, 4e-16]]},
    ],
    "covariance_temporal": [[4e-24, 1e-20], [1e-20, 1e-16]],
}


def small(**changed: Any) -> Platform:
    """small.yaml with the layers of uncertainty that it lacks."""
    content = yaml.safe_load(SMALL.read_text(encoding="utf-8")) | changed
    triangle = {
        "mean": {"mnk": 2e-10, "mn": 1e-10, "1": 1e-6},
        "covariance": {
            "terms": ["mnk", "mn", "1"],
            "matrix": [[9e-24, 2e-22, 0.0], [2e-22, 1e-20, 0.0], [0.0, 0.0, 1e-14]],
        },
        "noise": {"kind": "normal", "sd": {"mnk": 1e-11, "1": 1e-8}},
    }
    content["kernels"].append({"kernel": "dtrsm", "pieces": [triangle]})
    content["kernels"].append({"kernel": "dlatcpy", "pieces": [{"mean": {"mn": 5e-9, "1": 1e-7}}]})
    content["network"]["remote"]["segments"][0]["noise"] = {"modes": MODES}
    content["days"]["run_relative_sd"] = 0.01
    content["kernels"][0]["discrepancy_relative_sd"] = 0.02
    content["kernels"][0]["pieces"][0]["discrepancy_relative_sd"] = 0.07
    return Platform.model_validate(content)


MADE_UP = {
    "covariances": small(),
    "population": small(population=POPULATION),
    "graph": small(
        topology={
            "kind": "graph",
            "switches": [{"name": "a", "nodes": "1"}, {"name": "b", "nodes": "2"}],
            "links": [{"between": ["a", "b"], "bandwidth_Bps": 1e9}],
        }
    ),
}
NAMES = (*MADE_UP, "dahu-2019-04", "dahu-2020-01-loaded")


@cache
def platform_of(name: str) -> Platform:
    return MADE_UP.get(name) or load_platform(name)


def times(platform: Platform) -> tuple[float, ...]:
    return tuple(run.time_s for run in predict(HPL, platform, runs=2, fidelity="full").run_list)


@cache
def times_of(name: str) -> tuple[float, ...]:
    return times(platform_of(name))


class Writer:
    """Writes plain values as YAML, each time in another of its forms."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.anchors: dict[str, str] = {}
        self.numbers = count()

    def document(self, content: dict[str, Any]) -> str:
        if self.chance(0.1):
            return json.dumps(content, indent=self.rng.choice([None, 2]))
        text = self.block(content, "")
        text = self.rng.choice(["", "# a comment\n", "---\n", "%YAML 1.1\n--- # one\n"]) + text
        text += self.rng.choice(["", "...\n", "\n\n# the end"])
        if self.chance(0.2):
            text = text.replace("\n", "\r\n")
        return ("\ufeff" if self.chance(0.2) else "") + text

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def block(self, value: Any, indent: str) -> str:
        """Lines at `indent`, the last with its end."""
        lines = []
        if isinstance(value, dict) and value:
            for key, inner in self.items(value):
                if self.chance(0.05):
                    lines.append(f"{indent}# {key} follows\n")
                lines.append(f"{indent}{self.key(key)}:{self.below(inner, indent + '  ')}")
        else:
            lines += [f"{indent}-{self.below(inner, indent + '  ')}" for inner in value]
        return "".join(lines)

    def below(self, value: Any, indent: str) -> str:
        """What stands after a colon or a dash, to the end of the line and further."""
        if not isinstance(value, dict | list) or not value or self.chance(0.3):
            return f" {self.flow(value)}{'  # so' if self.chance(0.02) else ''}\n"
        return f"\n{self.block(value, indent)}"

    def flow(self, value: Any) -> str:
        if not isinstance(value, dict | list):
            return self.scalar(value)
        written = json.dumps(value)
        if written in self.anchors and self.chance(0.7):
            return f"*{self.anchors[written]}"
        name = f"x{next(self.numbers)}" if written not in self.anchors and self.chance(0.05) else None
        if isinstance(value, list):
            text = f"[{', '.join(self.flow(inner) for inner in value)}]"
        else:
            items = self.items(value)
            merged = items[: self.rng.randrange(len(items))] if len(items) > 1 and self.chance(0.1) else []
            parts = [f"{self.key(key)}: {self.flow(inner)}" for key, inner in items[len(merged) :]]
            if merged:
                parts.append(f"<<: {{{', '.join(f'{self.key(key)}: {self.flow(inner)}' for key, inner in merged)}}}")
            text = f"{{{', '.join(parts)}}}"
        if name is None:
            return text
        self.anchors[written] = name  # only now: inside itself it stands for nothing
        return f"&{name} {text}"

    def items(self, value: dict[str, Any]) -> list[tuple[str, Any]]:
        return self.rng.sample(list(value.items()), len(value))

    def key(self, key: str) -> str:
        forms = ["1", "'1'", '"1"', "0x1"] if key == "1" else [key, key, f'"{key}"', f"'{key}'"]
        return self.rng.choice(forms)

    def scalar(self, value: Any) -> str:
        if value is None:
            return self.rng.choice(["null", "~", "Null"])
        if isinstance(value, bool):
            return self.rng.choice({True: ["true", "True", "yes", "on"], False: ["false", "no", "off"]}[value])
        if isinstance(value, int):
            return self.rng.choice([str(value)] * 4 + [f'"{value}"', f"{value}.0", f"0x{value:x}", f"{value:_}"])
        if isinstance(value, float):
            forms = [repr(value)] * 4 + [f"{value:.17g}", f"{value:.16e}", f"'{value!r}'", f"{value:.20e}".upper()]
            if value == 0.0:
                forms += ["0", "-0.0", "'-0'", "-1e-400"]
            elif value.is_integer() and value < 1e15:
                forms += [str(int(value)), f"{int(value)}."]
            return self.rng.choice(forms)
        return json.dumps(value, ensure_ascii=self.chance(0.5))


def without_some_defaults(full: Any, least: Any, rng: random.Random) -> Any:
    """`full`, where some of what is not in `least` is left out."""
    if isinstance(full, dict):
        kept = {key: value for key, value in full.items() if key in least or rng.random() < 0.5}
        return {key: without_some_defaults(value, least.get(key, value), rng) for key, value in kept.items()}
    if isinstance(full, list):
        return [without_some_defaults(one, other, rng) for one, other in zip(full, least, strict=True)]
    return full


def content_of(platform: Platform, rng: random.Random) -> dict[str, Any]:
    """The plain values of `platform`, in another order and with or without its defaults."""
    full = platform.model_dump(mode="json")
    least = platform.model_dump(mode="json", exclude_defaults=True)
    content: dict[str, Any] = without_some_defaults(full, least, rng)
    content["description"] = rng.choice(["", "other words", "two\nlines"])
    for piece in pieces(content):
        if (covariance := piece.get("covariance")) is not None:
            order = rng.sample(range(len(covariance["terms"])), len(covariance["terms"]))
            piece["covariance"] = {
                "terms": [covariance["terms"][i] for i in order],
                "matrix": [[covariance["matrix"][i][j] for j in order] for i in order],
            }
    return content


def pieces(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [piece for model in content["kernels"] for piece in model["pieces"]]


@settings(max_examples=25)
@given(st.sampled_from(NAMES), st.integers(0, 2**32))
def test_no_form_of_a_platform_changes_its_digest_or_its_prediction(name: str, seed: int) -> None:
    content = content_of(platform_of(name), random.Random(seed))
    again = parse_platform(Writer(seed).document(content))
    assert again.sha256 == platform_of(name).sha256
    assert times(again) == times_of(name)


def moved(content: dict[str, Any], rng: random.Random) -> None:
    """Shuffles one of the lists or tables of `content`, or takes the names from its covariances."""
    lists = [content["kernels"]]
    for piece in pieces(content):
        lists.append(piece["noise"].get("modes") or [])
        if (table := piece.get("per_cpu")) is not None:
            lists.append(table["rows"])
            if rng.random() < 0.5:
                order = [0, 1, *rng.sample(range(2, len(table["columns"])), len(table["columns"]) - 2)]
                table["columns"] = [table["columns"][i] for i in order]
                table["rows"] = [[row[i] for i in order] for row in table["rows"]]
        if piece.get("covariance") is not None and rng.random() < 0.5:
            piece["mean"] = dict(rng.sample(list(piece["mean"].items()), len(piece["mean"])))
            piece["covariance"] = piece["covariance"]["matrix"]
    segments = content["network"]["remote"]["segments"]
    lists += [segment["noise"]["modes"] for segment in segments if segment.get("noise")]
    if (population := content.get("population")) is not None:
        lists += [population["groups"], population["terms"]]
    if content.get("topology"):
        lists += [content["topology"].get("switches") or [], content["topology"].get("links") or []]
    rng.shuffle(rng.choice([one for one in lists if len(one) > 1]))


@settings(max_examples=25)
@given(st.sampled_from(NAMES), st.integers(0, 2**32))
def test_what_predicts_differently_has_another_digest(name: str, seed: int) -> None:
    content = platform_of(name).model_dump(mode="json")
    moved(content, random.Random(seed))
    try:
        other = Platform.model_validate(content)
    except ValueError:
        return  # refused, and so not silently another
    if other.sha256 == platform_of(name).sha256:
        assert times(other) == times_of(name)


def test_a_platform_saved_again_with_sorted_keys_predicts_the_same() -> None:
    platform = MADE_UP["covariances"]
    again = parse_platform(yaml.safe_dump(yaml.safe_load(platform_text(platform))))
    assert again.sha256 == platform.sha256
    assert times(again) == times_of("covariances")


def test_a_covariance_that_does_not_name_its_terms_is_read_as_written_or_refused() -> None:
    content = MADE_UP["covariances"].model_dump(mode="json", exclude_none=True)
    for piece in pieces(content):
        if "covariance" in piece:
            piece["covariance"] = piece["covariance"]["matrix"]
    before = parse_platform(yaml.safe_dump(content, sort_keys=False))
    assert before == MADE_UP["covariances"]
    with pytest.raises(PlatformError, match="covariance does not name its terms"):
        parse_platform(yaml.safe_dump(content))


def test_a_changed_copy_has_a_digest_of_its_own() -> None:
    platform = MADE_UP["population"]
    digest = platform.sha256
    assert platform.model_copy(update={"name": "other"}).sha256 != digest
    assert on_its_day(platform, seed=1).sha256 != digest
    assert platform.model_copy().sha256 == digest
