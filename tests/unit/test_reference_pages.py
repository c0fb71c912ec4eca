"""The generated pages of the reference have every command, option, public name, field, variable and exit status."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lepaute
from lepaute.cli import COMMANDS, QUESTIONS, entry
from lepaute.cli.commands import built
from lepaute.watch.report.summary import EXIT_STATUS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from command_pages import GROUPS, each_command  # noqa: E402
from python_pages import GROUPS as NAMES  # noqa: E402
from python_pages import PLAIN, packages, public  # noqa: E402
from reference_pages import all_pages  # noqa: E402
from schema_pages import FORMATS  # noqa: E402
from status_page import MEANINGS, OF_COMMANDS  # noqa: E402

#: Variables by which parts of Lepaute talk to each other, or which only tests set.
INTERNAL = {
    *("LEPAUTE_EMULATION", "LEPAUTE_RECORD_FOLDER", "LEPAUTE_RECORD_EVERY_CALL", "LEPAUTE_RECORD_CALLS"),
    *("LEPAUTE_RECORD_TEST_SHIFT_NS", "LEPAUTE_SYSTEM_ROOT", "LEPAUTE_LAYOUT", "LEPAUTE_VERSION", "LEPAUTE_LINK_FLAGS"),
}


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return all_pages()


def test_every_option_of_every_command_is_on_its_page(pages: dict[str, str]) -> None:
    count = 0
    for name in (command.name for command in COMMANDS):
        sections = re.split(r"^:::\{program\} lepaute (.*)$", pages[f"commands/{name}.md"], flags=re.MULTILINE)
        options = dict(zip(sections[1::2], sections[2::2], strict=True))
        for words, command in each_command(name, built(name)[0]):
            shown = {
                word
                for line in re.findall(r"^:::\{option\} (.*)$", options[words], re.MULTILINE)
                for word in re.findall(r"(?:^|, )(-[\w-]+)", line)
            }
            known = {
                word
                for param in command.params
                if param.param_type_name == "option" and not param.hidden
                for word in (*param.opts, *param.secondary_opts)
            }
            assert known <= shown, words
            assert shown <= known | {"-h", "--help"}, words
            count += len(known)
    assert count > 700


def test_defaults_and_bounds_are_told(pages: dict[str, str]) -> None:
    predict = pages["commands/predict.md"]
    assert ":::{option} --bcast TEXT,..." in predict
    assert "Default: `2ring`." in predict
    assert "Cores that each rank computes on. Default: `1`. Allowed: value ≥ 1." in predict
    assert re.search(r"--platform TEXT\n\n.*\*\*Required\.\*\*", predict)


def test_every_command_has_an_example_and_answers_one_question(pages: dict[str, str]) -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(command.name for command in COMMANDS)
    assert [question for question in GROUPS if question in dict(QUESTIONS)] == [question for question, _ in QUESTIONS]
    for question, line in QUESTIONS:
        assert line.split()[1] in GROUPS[question]
    for name in grouped:
        assert "```bash\nlepaute" in pages[f"commands/{name}.md"]


def test_every_public_name_is_described(pages: dict[str, str]) -> None:
    text = "\n".join(page for path, page in pages.items() if path.startswith("python/"))
    described = re.findall(r"^::::\{py:\w+\} ([\w.]+)", text, re.MULTILINE)
    assert len(described) == len(set(described))
    top = {f"lepaute.{name}" for name in lepaute.__all__} - {f"lepaute.{name}" for name in (*packages(), *PLAIN)}
    below = {f"lepaute.{name}.{one}" for name in packages() for one in public(getattr(lepaute, name))}
    assert set(described) == top | below
    assert all(f"`lepaute.{name}`" in pages["python/index.md"] for name in PLAIN)


def test_every_argument_of_a_public_function_is_in_its_signature(pages: dict[str, str]) -> None:
    for page, (_, names) in NAMES.items():
        for name in names:
            value = getattr(lepaute, name)
            if inspect.isfunction(value):
                line = next(
                    one
                    for one in pages[f"python/{page}.md"].splitlines()
                    if one.startswith(f"::::{{py:function}} lepaute.{name}(")
                )
                assert all(re.search(rf"[(, *]{argument}\b", line) for argument in inspect.signature(value).parameters)


def test_every_field_of_a_file_is_on_its_page(pages: dict[str, str]) -> None:
    for format_ in FORMATS:
        page, schema = pages[f"formats/{format_.name}.md"], format_.schema()
        for part in (schema, *schema.get("$defs", {}).values()):
            assert all(f"\n`{field}`\n: " in page for field in part.get("properties", {}))
        assert all(f"\n## {name}\n" in page.replace("\\_", "_") for name in schema.get("$defs", {}))


def ends(module: Path) -> Iterator[str]:
    """What a module of commands says about exit statuses other than 0 and 2, in its code."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.IfExp) and " else " in ast.unparse(node):
            text = re.sub(r" if .*? else ", " else ", ast.unparse(node.value))
            if re.fullmatch(r"\d+(?: else \d+)+", text):
                yield from re.findall(r"\b(?:1|130)\b", text)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Exit":
            text = ast.unparse(node).replace("LIBRARY_FAILED", "5")
            yield from re.findall(r"\b[135]\b", re.sub(r"min\(statuses\)|exit_status", "1, 3", text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "end_by":
            yield from ("1", "3")


def test_every_exit_status_is_explained(pages: dict[str, str]) -> None:
    page = pages["exit_statuses.md"]
    of_entry = {status for name, status in vars(entry).items() if re.fullmatch("[A-Z][A-Z_]*", name)}
    known = {status for status in of_entry if type(status) is int} | set(EXIT_STATUS.values())
    assert set(MEANINGS) == known | {status for cases in OF_COMMANDS.values() for status, _ in cases}
    assert all(page.count(f"\n| {status} |") == 1 for status in MEANINGS)  # with one meaning
    modules = {
        path.name: set(ends(path))
        for path in (ROOT / "src/lepaute/cli").glob("*.py")
        if path.name != "entry.py" and set(ends(path))
    }
    # The commands of these modules; a module that is not here has a command that the page lacks.
    assert {name: len(found) for name, found in modules.items()} == {
        "archive.py": 1, "compare.py": 3, "learn.py": 1, "predict.py": 1, "run.py": 2, "trace.py": 1, "verify.py": 2,
        "verify_campaign.py": 2, "watch_nodes.py": 1,
    }  # fmt: skip
    leaves = {words for command in COMMANDS for words, _ in each_command(command.name, built(command.name)[0])}
    assert set(OF_COMMANDS) <= leaves


def test_every_link_of_a_page_leads_to_a_file_or_stands_for_a_generated_page(pages: dict[str, str]) -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    places = [
        ((page.parent / to).resolve(), part)
        for page in [ROOT / name for name in listed.split() if not name.startswith("changes/")]
        for to, part in re.findall(r"\]\((?![a-z]+:)([^)\s#]*)#?([^)\s]*)\)", page.read_text(encoding="utf-8"))
    ]
    assert len(places) > 500
    folder = ROOT / "docs/reference"
    assert [path for path, _ in places if not path.exists() or path in {folder / name for name in pages}] == []
    assert {f"{part}.md" for path, part in places if path == folder / "index.md" and part} < pages.keys()


def test_every_variable_that_the_package_reads_is_documented() -> None:
    read = {
        name
        for path in (ROOT / "src/lepaute").rglob("*.py")
        for name in re.findall(r"[\"'](LEPAUTE_[A-Z0-9_]+)[\"']", path.read_text(encoding="utf-8"))
    }
    text = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
    assert len(read) > 5
    assert {name for name in read - INTERNAL if f"`{name}`" not in text} == set()
