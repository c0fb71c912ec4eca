"""Limits that only fall: what is counted, and what is refused, in repositories of git made for it."""

from pathlib import Path

import pytest
from support_limits import ran

from scripts import limits

ROOT = Path(__file__).resolve().parents[2]
#: Files without code, by their endings.
NO_CODE = (
    *(".md", ".yaml", ".csv", ".gz", ".png", ".svg", ".json", ".toml", ".txt", ".parquet", ".cff", ".typed"),
    *(".gitignore", ".dockerignore", ".clang-format", ".clang-tidy", "LICENSE", ".ci/landing"),
)
#: Inputs of tests, the stub that make stubs writes, inputs of LAMMPS and Quantum ESPRESSO.
EXCEPTIONS = (
    ".github/",
    "tests/data/",
    "tests/effects/inputs/",
    "src/lepaute/_core.pyi",
    "validation/real_programs/in.",
    "validation/real_programs/si.in",
)
FILE = """[lines]
total = 9 # of all
src.python = {lines}
[words]
told = {told}
[allowance.learn]
lines = 2
paths = [{paths}]
[renamed]
{renamed}"""


class Repository:
    """One file of Python and the limits."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "src" / "lepaute").mkdir(parents=True)
        (root / "scripts").mkdir()
        self.git("init", "-q", "-b", "main")
        self.write(lines=9)
        self.code(9)
        self.commit("start")

    def git(self, *words: str, status: int | None = 0) -> str:
        command = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(self.root), *words]
        done = ran(command)
        assert status in (None, done.returncode), done.stderr
        return done.stdout.strip()

    def write(self, *, lines: int, told: int = 0, paths: str = "", renamed: str = "") -> None:
        (self.root / limits.FILE).write_text(FILE.format(lines=lines, told=told, paths=paths, renamed=renamed))

    def code(self, lines: int) -> None:
        (self.root / "src" / "lepaute" / "a.py").write_text("x\n" * lines)

    def commit(self, title: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", title)
        return self.git("rev-parse", "HEAD")[:9]

    def edit(self, old: str, new: str) -> None:
        path = self.root / limits.FILE
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def failures(self, *, strict: bool = False) -> list[str]:
        return limits.check(self.root, strict=strict)[0]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_every_file_of_code_has_a_limit_and_every_other_a_reason() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    known = limits.limits_of(limits.tomllib.loads((ROOT / limits.FILE).read_text()))
    for path in limits.git(ROOT, "ls-files").decode().splitlines():
        category = limits.category_of(path)
        if category is None:
            assert path.endswith(NO_CODE) or path.startswith(EXCEPTIONS), path
        else:
            assert f"lines.{category}" in known, path


def test_more_than_a_limit_fails_and_less_fails_where_it_lands(repository: Repository) -> None:
    assert repository.failures(strict=True) == []
    repository.code(10)
    assert repository.failures() == [
        "lines.total is 10, limit 9: delete as much as you add",
        "lines.src.python is 10, limit 9: delete as much as you add",
    ]
    repository.code(8)
    (line,) = limits.check(repository.root, strict=False)[1]
    assert repository.failures() == []
    assert repository.failures(strict=True) == [line]
    assert line.startswith("limits above what there is: lines.total, lines.src.python: run scripts/limits.py --tighten")
    (repository.root / "tools").mkdir()
    (repository.root / "tools" / "new.sh").write_text("true\n")  # code in a folder without a limit
    (line,) = repository.failures()
    assert line.startswith("lines.tools.shell is 1 and has no limit")


def test_tighten_lowers_and_keeps_the_rest(repository: Repository) -> None:
    repository.code(7)
    limits.tighten(repository.root)
    text = (repository.root / limits.FILE).read_text()
    assert text == FILE.format(lines=7, told=0, paths="", renamed="").replace("9 # of all", "7 # of all")
    assert repository.failures(strict=True) == []
    repository.code(8)
    limits.tighten(repository.root)
    assert (repository.root / limits.FILE).read_text() == text


def test_a_raise_is_refused_before_and_after_it_is_committed(repository: Repository) -> None:
    repository.write(lines=8)
    lowered = repository.commit("lower")
    repository.write(lines=9)
    line = f"lines.src.python = 9, but lines.src.python = 8 in commit {lowered}: limits only fall"
    assert repository.failures() == [line]
    repository.git("switch", "-q", "-c", "branch")
    repository.commit("raise")
    assert repository.failures() == [line]


def test_a_conflict_is_solved_by_the_lower_value(repository: Repository) -> None:
    repository.git("switch", "-q", "-c", "branch")
    repository.write(lines=7)
    repository.edit("lines = 2", "lines = 1")
    repository.code(7)
    repository.commit("branch")
    repository.git("switch", "-q", "main")
    repository.write(lines=8, paths='"x"')
    repository.commit("main")
    repository.git("merge", "-q", "branch", status=1)
    assert "conflict" in repository.failures()[0]
    limits.tighten(repository.root)
    text = FILE.format(lines=7, told=0, paths='"x"', renamed="").replace("lines = 2", "lines = 1")
    assert (repository.root / limits.FILE).read_text() == text.replace("total = 9", "total = 7")
    repository.commit("merged")
    assert repository.failures(strict=True) == []


def test_a_key_may_not_vanish_but_be_renamed(repository: Repository) -> None:
    start = repository.git("rev-parse", "HEAD")[:9]
    repository.edit("told = 0", "")
    gone = f"words.told is gone, 0 in commit {start}: put it back, or its successor in [renamed]"
    assert repository.failures() == [gone]
    repository.commit("removed")
    repository.edit("[words]", "[words]\ntold = 1")
    assert repository.failures() == [f"words.told = 1, but words.told = 0 in commit {start}: limits only fall"]
    repository.edit("told = 1", "messages = 1")
    repository.edit("[renamed]", '[renamed]\n"words.told" = "words.messages"')
    assert repository.failures() == [f"words.messages = 1, but words.told = 0 in commit {start}: limits only fall"]
    repository.edit("messages = 1", "messages = 0")
    assert repository.failures() == []
    repository.edit("messages = 0", "messages = 0\ntold = 1")
    assert "words.told cannot be renamed to words.messages: it is still there" in repository.failures()[0]
    repository.edit("told = 1\n", "")
    repository.edit('"words.messages"', '"lines.src.python"')
    assert "lines.src.python is in another table" in repository.failures()[0]
    (repository.root / limits.FILE).unlink()
    repository.commit("the file removed")
    repository.write(lines=9, told=1)
    assert repository.failures() == [f"words.told = 1, but words.told = 0 in commit {start}: limits only fall"]


def test_keys_that_become_one_inherit_their_sum(repository: Repository) -> None:
    (repository.root / "probes").mkdir()
    (repository.root / "probes" / "a.c").write_text("\n" * 5)
    repository.edit("[words]", "probes.c = 5\n[words]")
    repository.edit("total = 9", "total = 14")  # as a repository without history has it
    repository.git("update-ref", "-d", "HEAD")
    start = repository.commit("start")
    assert repository.failures(strict=True) == []
    repository.git("mv", "probes/a.c", "src/lepaute/b.py")
    repository.edit("probes.c = 5\n", "")
    repository.edit("src.python = 9", "src.python = 14")
    assert len(repository.failures()) == 2
    repository.edit("[renamed]", '[renamed]\n"lines.probes.c" = "lines.src.python"')
    assert repository.failures(strict=True) == []
    repository.edit("src.python = 14", "src.python = 15")
    words = f"lines.src.python + lines.probes.c = 14 in commit {start}"
    assert repository.failures() == [f"lines.src.python = 15, but {words}: limits only fall"]


def test_an_allowance_is_besides_the_limits_and_never_grows(repository: Repository) -> None:
    learn = repository.root / "src" / "lepaute" / "learn"
    learn.mkdir()
    (learn / "new.py").write_text("x\n" * 2)
    assert len(repository.failures()) == 2
    repository.write(lines=9, paths='"src/lepaute/learn/*"')
    assert repository.failures(strict=True) == []
    (learn / "newer.py").write_text("x\n")
    assert "lines.src.python is 10, limit 9" in repository.failures()[1]  # what exceeds it counts in the folder
    (learn / "new.py").unlink()
    (learn / "newer.py").unlink()
    repository.write(lines=9, paths='"src/lepaute/a.py"')  # existing code: the margin is taken back
    limits.tighten(repository.root)
    assert limits.limits_of(limits.tomllib.loads((repository.root / limits.FILE).read_text())) == {
        "lines.total": 7, "lines.src.python": 7, "words.told": 0, "allowance.learn.lines": 2,
    }  # fmt: skip
    repository.edit("lines = 2", "lines = 3")
    assert "allowance.learn.lines = 3, but allowance.learn.lines = 2 in commit" in repository.failures()[0]
    repository.edit("lines = 3", "lines = 2")
    repository.edit("[renamed]", "[allowance.more]\nlines = 5\npaths = []\n[renamed]")
    repository.commit("another")
    assert repository.failures() == ["allowance.more.lines is new: no allowance may be added"]


def test_circles_imports_words_and_names_of_a_package(tmp_path: Path) -> None:
    modules = {
        "__init__": "from z import x as x\nfrom z import y as y\n",
        "a": "def f(toldOff, told_as):\n    from lepaute import b\n    import os\n",
        "b": "from .sub import thing\n",
        "sub/__init__": "if TYPE_CHECKING:\n    from lepaute.sub.home import thing as thing\n",
        "sub/home": 'from lepaute.a import f\nclass _Hidden:\n    """told"""\n',
        "c": "if TYPE_CHECKING:\n    from lepaute import d\n",
        "d": "import lepaute.c\n",
        "e": 'if TYPE_CHECKING:\n    import lepaute.f\nelse:\n    lepaute = later("lepaute.f")\n',
        "f": "from lepaute.e import Found, told\nasync def found(): ...\n",
    }
    for name, text in modules.items():
        path = tmp_path / "src" / "lepaute" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    headers = {"a.hpp": '#include "x/b.hpp"\n', "a.cpp": '#include "a.hpp"\n', "x/b.cpp": "", "x/b.hpp": ""}
    for name, text in {**headers, "x/b.cpp": '#include "c.hpp"\n', "x/c.hpp": '# include "../a.hpp"\n'}.items():
        path = tmp_path / "core" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    measured = limits.measure(tmp_path, {})
    assert measured.places["circles.src.number"] == "lepaute.a lepaute.b lepaute.sub.home; lepaute.e lepaute.f"
    assert measured.places["circles.core.number"] == "core/a core/x/b core/x/c"
    expected = {
        "circles.src.modules": 5, "imports.in_functions": 2, "words.told": 3, "words.found": 2, "public.exported": 2,
        "public.module_level": 2, "files.src": 9, "lines.core.c": 4, "largest_function.src.python": 3,
    }  # fmt: skip
    assert {key: measured.values[key] for key in expected} == expected
