"""`lepaute examples`: every folder of the examples is a topic; a copy is whole, and replaces nothing unasked."""

from pathlib import Path

import pytest

from lepaute.cli.example_files import TOPICS, example_folder

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_folder_of_the_examples_is_listed(output_of) -> None:
    assert TOPICS.keys() == {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert all(topic in output_of("examples") for topic in TOPICS)


def test_the_package_brings_the_examples_of_the_sources() -> None:
    for path in EXAMPLES.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (example_folder() / path.relative_to(EXAMPLES)).read_bytes() == path.read_bytes()


def test_a_topic_is_copied_whole_and_again_only_with_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output_of, refusal_of
) -> None:
    monkeypatch.chdir(tmp_path)
    output_of("examples", "studies", "watch")
    copied = tmp_path / "examples" / "watch" / "fleet.csv"
    assert copied.read_bytes() == (EXAMPLES / "watch" / "fleet.csv").read_bytes()
    copied.write_text("mine")
    refusal_of("examples", "all")
    assert copied.read_text() == "mine"
    assert not (tmp_path / "examples" / "stencil").exists()
    output_of("examples", "all", "--force")
    assert copied.read_bytes() == (EXAMPLES / "watch" / "fleet.csv").read_bytes()
    assert (tmp_path / "examples" / "stencil" / "stencil.c").is_file()
