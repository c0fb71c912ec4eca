#!/usr/bin/env python
"""What this repository may have at most, in `scripts/limits.toml`: numbers that only fall.

    scripts/limits.py            fails where there is more or less than a limit, or a limit was raised (make lint)
    scripts/limits.py --tighten  lowers the limits to what there is, never raises one; of a file in conflict (git merge)
                                 it takes the lower of both values

Tighten in the last commit of a change: what it gives back is gone. A limit may not exceed the least value that it had
in any commit reachable from HEAD. `[renamed]` names the successor of a key, which inherits its values; where several
keys have one successor, their sum. A new key needs no history, but `lines.total` holds for all code together.

lines.FOLDER.LANGUAGE     newlines of code, comments and blank lines too: the files that git tracks, and those that it
                          does not ignore, sorted by `category_of`; lines.total: all of them
files.src                 files of Python in src/
docs.words                what str.split() makes of all Markdown but CHANGELOG.md, changes/ and tests/
largest_file.*            lines of the largest file of a folder and language
largest_function.*        from `def` to its last line, without decorators
circles.FOLDER.number     sets of two or more modules each of which imports, maybe through others, all of the set, and
circles.FOLDER.modules    the modules in them. Of src: imports at the top and in functions, and `later("...")`; not what
                          is under `if TYPE_CHECKING`. `from a import b` needs a.b where that is a module, else a, and
                          the module from which a exports b lazily (under its TYPE_CHECKING); never the packages around
                          a.b. Of C and C++: #include "..."; a source and its header are one module
imports.in_functions      statements in functions of src/, whatever they import
public.exported           names that `lepaute` imports `as` what they are called
public.module_level       functions and classes at the top of a module of src/, without a leading underscore
words.WORD                identifiers of src/ with this word, each time they are written: names of variables, arguments,
                          attributes, functions, classes and what is imported, cut at underscores and capitals
allowance.NAME.lines      of the files under allowance.NAME.paths (`*` matches `/` too) so many lines are not counted in
                          `lines`, and files that are covered whole neither in `files` nor `public.module_level`. Fixed
                          from the first commit: none may be added or raised
"""

import ast
import gc
import posixpath
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILE = "scripts/limits.toml"
LANGUAGES = {
    **dict.fromkeys((".py", ".ipynb"), "python"),
    **dict.fromkeys((".c", ".h", ".cpp", ".hpp"), "c"),
    **dict.fromkeys((".j2", ".js", ".css", ".html"), "web"),
    **dict.fromkeys(("Makefile", "CMakeLists.txt", "Containerfile"), "build"),
    ".sh": "shell",
    ".ci/run": "shell",
    ".f90": "fortran",
}
NO_CODE = ("tests/data/",)  # inputs of tests, some of them programs
NO_DOCS = ("CHANGELOG.md", "changes/", "tests/")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NAMES: dict[type[ast.AST], tuple[str, ...]] = {  # where the nodes of Python keep identifiers
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler), ("name",)),
    **dict.fromkeys((ast.arg, ast.keyword), ("arg",)),
    ast.Name: ("id",),
    ast.Attribute: ("attr",),
    ast.alias: ("name", "asname"),
}
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
LIMIT = re.compile(r"^([\w.-]+)( *= *)(\d[\d_]*)", re.MULTILINE)
CONFLICT = re.compile(r"^<<<<<<< .*\n([\s\S]*?)(?:^\|{7} [\s\S]*?)?^=======\n([\s\S]*?)^>>>>>>> .*\n?", re.MULTILINE)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--tighten"]):
        print("limits.py knows no argument but --tighten", file=sys.stderr)
        return 2
    if arguments:
        try:
            tighten(ROOT)
        except (OSError, SyntaxError, ValueError) as error:
            print(f"limits: {error}")
            return 1
    failures, notes = check(ROOT, strict=True)
    print(*failures, *notes, sep="\n", end="\n" if failures or notes else "")
    return 1 if failures else 0


def check(root: Path, *, strict: bool) -> tuple[list[str], list[str]]:
    """What fails, and what is only said: unused margins and a history that is cut off fail where `strict`."""
    try:
        document = tomllib.loads((root / FILE).read_text())
        gc.disable()  # syntax trees are large and no garbage: three times as fast
        measured = measure(root, document)
        versions = history(root)
        shallow = git(root, "rev-parse", "--is-shallow-repository") == b"true\n"
    except tomllib.TOMLDecodeError as error:
        return [f"{FILE}: {error} (of a conflict scripts/limits.py --tighten takes the lower values)"], []
    except (OSError, SyntaxError) as error:
        return [f"limits: {error}"], []
    finally:
        gc.enable()
    limits = limits_of(document)
    bounds = {key: limit for key, limit in limits.items() if not key.startswith("allowance.")}
    values = {key: measured.values[key] for key in bounds}
    failures = [
        f"{key} is {values[key]:,}, limit {limit:,}: delete as much as you add{measured.place(key)}"
        for key, limit in bounds.items()
        if values[key] > limit
    ]
    failures += [
        f"{key} is {value:,} and has no limit: add the key to {FILE}, and delete as much elsewhere"
        for key, value in measured.values.items()
        if key.startswith("lines.") and key not in limits
    ]
    renamed = document.get("renamed", {})
    failures += [
        f"{old} cannot be renamed to {new}: it is still there, or {new} is in another table"
        for old, new in renamed.items()
        if old in limits or measured.values[old] or old.split(".")[0] != new.split(".")[0]
    ]
    failures += raised(versions, limits, renamed)
    faults = []
    if unused := [key for key, limit in bounds.items() if values[key] < limit]:
        faults.append(
            f"limits above what there is: {', '.join(unused)}: run scripts/limits.py --tighten and commit {FILE}"
        )
    if shallow:
        faults.append("the history is cut off, so limits may have been raised: git fetch --unshallow")
    notes = [] if (root / ".git").exists() else ["no .git here: whether limits were raised is not known"]
    return (failures + faults, notes) if strict else (failures, faults + notes)


def limits_of(document: Mapping[str, Any], prefix: str = "") -> dict[str, int]:
    """Whole numbers by their dotted names."""
    limits: dict[str, int] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            limits |= limits_of(value, f"{prefix}{key}.")
        elif type(value) is int:
            limits[prefix + key] = value
    return limits


# What there was


def git(root: Path, *arguments: str, stdin: str = "") -> bytes:
    """What git answers; nothing where the checkout has no history, as of an sdist."""
    if not (root / ".git").exists():
        return b""
    command: list[str | Path] = ["git", "-c", "safe.directory=*", "-C", root, *arguments]
    done = subprocess.run(command, input=stdin.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        raise OSError(f"git {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout


def history(root: Path) -> list[tuple[str, dict[str, int]]]:
    """Commit and limits, of each commit that changed the file; the oldest last."""
    commits = git(root, "log", "--full-history", "--topo-order", "--format=%H", "--", FILE).decode().split()
    answer = git(root, "cat-file", "--batch", stdin="".join(f"{commit}:{FILE}\n" for commit in commits))
    versions = []
    for commit in commits:
        head, _, answer = answer.partition(b"\n")
        if not head.endswith(b" missing"):
            size = int(head.split()[2])
            with suppress(tomllib.TOMLDecodeError):  # a file that did not pass the check
                versions.append((commit[:9], limits_of(tomllib.loads(answer[:size].decode()))))
            answer = answer[size + 1 :]
    return versions


def raised(
    versions: list[tuple[str, dict[str, int]]],
    limits: Mapping[str, int],
    renamed: Mapping[str, str],
) -> list[str]:
    """A line for each limit that is above the least it ever was, or that is gone."""

    def successor(key: str) -> str:
        for _ in renamed:
            key = renamed.get(key, key)
        return key

    failures = []
    least: dict[str, tuple[int, str, str]] = {}
    for commit, before in versions:
        sums: Counter[str] = Counter()
        names = defaultdict(list)
        for key, value in before.items():
            sums[successor(key)] += value
            names[successor(key)].append(key)
        for key, value in sums.items():
            if key not in least or value <= least[key][0]:
                least[key] = value, commit, " + ".join(names[key])
    for key, (value, commit, old) in least.items():
        if key not in limits:
            failures.append(f"{key} is gone, {value:,} in commit {commit}: put it back, or its successor in [renamed]")
        elif limits[key] > value:
            failures.append(f"{key} = {limits[key]}, but {old} = {value} in commit {commit}: limits only fall")
    first = {successor(key) for key in versions[-1][1]} if versions else limits.keys()
    added = [key for key in limits if key.startswith("allowance.") and key not in first]
    return failures + [f"{key} is new: no allowance may be added" for key in added]


def tighten(root: Path) -> None:
    """Lowers limits to what there is, and merges a file with both sides of a conflict; comments stay as they are."""
    text = (root / FILE).read_text()
    theirs = limits_of(tomllib.loads(CONFLICT.sub(r"\2", text)))
    text = CONFLICT.sub(r"\1", text)
    document = tomllib.loads(text)
    measured = measure(root, document)
    table = ""
    lines = []
    for line in text.splitlines(keepends=True):
        if line.startswith("["):
            table = line[1 : line.index("]")]
        if match := LIMIT.match(line):
            key, before = f"{table}.{match[1]}", int(match[3])
            bounds = [before, theirs.get(key, before)]
            if not key.startswith("allowance."):
                bounds.append(measured.values[key])
            if min(bounds) < before:
                line = f"{match[1]}{match[2]}{min(bounds)}{line[match.end() :]}"  # noqa: PLW2901
        lines.append(line)
    (root / FILE).write_text("".join(lines))


# What there is


@dataclass
class Measured:
    """Values by key, and for some of them where to look."""

    values: Counter[str] = field(default_factory=Counter)
    places: dict[str, str] = field(default_factory=dict)

    def place(self, key: str) -> str:
        return f" ({self.places[key]})" if key in self.places else ""

    def largest(self, key: str, value: int, place: str) -> None:
        if value > self.values[key]:
            self.values[key], self.places[key] = value, place

    def circles(self, folder: str, needs: Mapping[str, set[str]]) -> None:
        circles = circles_of(needs)
        self.values[f"circles.{folder}.number"] = len(circles)
        self.values[f"circles.{folder}.modules"] = sum(map(len, circles))
        self.places[f"circles.{folder}.number"] = "; ".join(" ".join(circle) for circle in circles)


def category_of(path: str) -> str | None:
    """Folder and language of a file of code, as in "src.python"; None of any other."""
    parts = PurePosixPath(path)
    language = LANGUAGES.get(path) or LANGUAGES.get(parts.name) or LANGUAGES.get(parts.suffix)
    if language is None or path.startswith(NO_CODE):
        return None
    folder = parts.parts[0] if len(parts.parts) > 1 else "root"
    if path.startswith("core/tests/"):
        folder = "core_tests"
    return f"{'scripts' if folder == '.ci' else folder}.{language}"


def files_of(root: Path) -> list[str]:
    """Paths of the repository: without git all but what begins with a dot or is built."""
    if listed := git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"):
        return sorted(path for path in set(listed.decode().split("\0")) if path and (root / path).is_file())
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(path for path in paths if path == ".ci/run" or not re.match(r"\.|build/|dist/|demo-output", path))


def measure(root: Path, document: Mapping[str, Any]) -> Measured:
    """Everything that may have a limit."""
    measured = Measured()
    values = measured.values
    allowances = [
        [allowance.get("lines", 0), allowance.get("paths", [])] for allowance in document.get("allowance", {}).values()
    ]
    package: dict[str, str] = {}
    counted_files = set()
    native: dict[str, str] = {}
    for path in files_of(root):
        if path.endswith(".md") and not path.startswith(NO_DOCS):
            values["docs.words"] += len((root / path).read_text().split())
        if (category := category_of(path)) is None:
            continue
        text = (root / path).read_text()
        lines = counted = text.count("\n")
        for allowance in allowances:
            if any(fnmatchcase(path, glob) for glob in allowance[1]):
                covered = min(counted, allowance[0])
                counted, allowance[0] = counted - covered, allowance[0] - covered
        values[f"lines.{category}"] += counted
        values["lines.total"] += counted
        measured.largest(f"largest_file.{category}", lines, path)
        if category == "src.python":
            package[path] = text
            if counted or not lines:
                counted_files.add(path)
        elif category == "tests.python":
            for node in ast.walk(ast.parse(text, path)):
                longest(measured, category, node, path)
        elif category.endswith(".c"):
            native[path] = text
    values["files.src"] = len(counted_files)
    measure_package(measured, package, counted_files)
    measure_native(measured, native)
    return measured


def longest(measured: Measured, category: str, node: ast.AST, path: str) -> None:
    if isinstance(node, FUNCTIONS):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        measured.largest(f"largest_function.{category}", length, f"{path}: {node.name}")


def measure_package(measured: Measured, package: Mapping[str, str], counted: set[str]) -> None:
    """Functions, names, words, imports and circles of src/."""
    identifiers: Counter[str] = Counter()
    exports: dict[str, str] = {}
    imports: dict[str, list[str]] = {}
    for path, text in package.items():
        tree = ast.parse(text, path)
        module = ".".join(PurePosixPath(path).with_suffix("").parts[1:]).removesuffix(".__init__")
        is_package = path.endswith("/__init__.py")
        imports[module] = []
        for node, in_function, for_types in walk(tree):
            longest(measured, "src.python", node, path)
            for attribute in NAMES.get(type(node), ()):
                identifiers[getattr(node, attribute) or ""] += 1
            names = imported(node, module, is_package=is_package)
            if not for_types:
                imports[module] += names
                measured.values["imports.in_functions"] += in_function and isinstance(node, ast.Import | ast.ImportFrom)
            elif is_package and isinstance(node, ast.ImportFrom):
                aliases = zip(node.names, names, strict=True)
                exports |= {f"{module}.{alias.asname or alias.name}": name for alias, name in aliases}
        if path in counted:
            tops = [node.name for node in tree.body if isinstance(node, (*FUNCTIONS, ast.ClassDef))]
            measured.values["public.module_level"] += sum(not name.startswith("_") for name in tops)
        if module == "lepaute":
            measured.values["public.exported"] = len(re.findall(r"^ *from .* as \w+$", text, re.MULTILINE))
    for identifier, count in identifiers.items():
        for word in WORD.findall(identifier):
            measured.values[f"words.{word.lower()}"] += count
    needs = {module: set().union(*(homes(name, imports, exports) for name in imports[module])) for module in imports}
    measured.circles("src", {module: others - {module} for module, others in needs.items()})


def walk(tree: ast.AST) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Every node, whether it is in a function, and whether it is for type checkers alone."""
    nodes: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while nodes:
        node, in_function, for_types = nodes.pop()
        yield node, in_function, for_types
        in_function = in_function or isinstance(node, FUNCTIONS)
        children = list(vars(node).values())
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            nodes += ((child, in_function, True) for child in node.body)
            children = [node.orelse]
        for child in children:
            if isinstance(child, list):
                nodes += ((item, in_function, for_types) for item in child if isinstance(item, ast.AST))
            elif isinstance(child, ast.AST) and not isinstance(child, ast.expr_context):
                nodes.append((child, in_function, for_types))


def imported(node: ast.AST, module: str, *, is_package: bool) -> list[str]:
    """Dotted names that a node imports: modules, and what is taken from them."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        above = module.split(".")[: len(module.split(".")) + is_package - node.level] if node.level else []
        base = ".".join([*above, node.module] if node.module else above)
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
        return [str(node.args[0].value)] if called in ("later", "import_module") else []
    return []


def homes(name: str, modules: Mapping[str, Any], exports: Mapping[str, str]) -> set[str]:
    """The modules that a dotted name needs: it, or the one it is in, and that from which a package exports it."""
    needed = set()
    while name not in modules and name in exports:
        needed.add(name.rpartition(".")[0])
        name = exports[name]
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return (needed | {name}) & modules.keys()


def measure_native(measured: Measured, native: Mapping[str, str]) -> None:
    """Circles of the folders of C and C++."""
    folders = {path.split("/")[0] for path in native}
    for folder in sorted(folders):
        needs: dict[str, set[str]] = defaultdict(set)
        for path, text in native.items():
            if not path.startswith(f"{folder}/"):
                continue
            module = path.rpartition(".")[0]
            for name in re.findall(r'^\s*#\s*include\s*"(.*)"', text, re.MULTILINE):
                places = (posixpath.normpath(f"{start}/{name}") for start in (posixpath.dirname(path), folder))
                needs[module] |= {place.rpartition(".")[0] for place in places if place in native} - {module}
        measured.circles(folder, needs)


def circles_of(needs: Mapping[str, set[str]]) -> list[list[str]]:
    """Sets of modules that reach each other: those of each module that it reaches, and that reach it."""
    reached: dict[str, set[str]] = {}
    for module in needs:
        reached[module], ahead = set(), [module]
        while ahead:
            new = needs.get(ahead.pop(), set()) - reached[module]
            reached[module] |= new
            ahead += new
    circles = {tuple(sorted(b for b in reached[a] if a in reached.get(b, ()))) for a in needs if a in reached[a]}
    return sorted(map(list, circles))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
