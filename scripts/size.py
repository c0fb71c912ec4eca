"""How large the Python of this project is: a row for each package of `src/lepaute`, and the limits that hold for it.

Lines of code are those with a token that is neither comment nor docstring. A module counts as having one importer where
exactly one other module of the package names it in an import. `scripts/size.py DIR` counts another checkout.
"""

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Lines and files that may not be exceeded: about what there is, so that growth is seen. The renovation aims at 65,000
#: lines in 380 files of src and 40,000 lines of tests; lower these with every step. Last raised by 1,500 and 1,300: for
#: traces of other programs (OTF2, those of SMPI without times, Paraver, GOAL), collective operations of neighbours and
#: sums that round alike with every Python.
LIMITS = {"src": (109_900, 518), "tests": (70_200, None)}
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass
class Size:
    """Of a package."""

    files: int = 0
    lines: int = 0
    code_lines: int = 0
    functions: int = 0
    one_importer: int = 0

    def add(self, other: "Size") -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else ROOT
    sizes = sizes_of(root / "src" / "lepaute")
    print(f"{'package':<12}{'files':>7}{'lines':>9}{'code':>9}{'functions':>11}{'one importer':>14}")
    total = Size()
    for name, size in sorted(sizes.items(), key=lambda item: -item[1].lines):
        print(row(name, size))
        total.add(size)
    print(row("src", total))
    tests = Size()
    for path in (root / "tests").rglob("*.py"):
        tests.add(size_of(path.read_text()))
    print(row("tests", tests))
    for warning in warnings(root):
        print(warning)
    return 0


def warnings(root: Path) -> list[str]:
    """A line for each limit that a checkout exceeds."""
    lines = []
    for folder, (most_lines, most_files) in LIMITS.items():
        texts = [path.read_text() for path in (root / folder).rglob("*.py")]
        for unit, count, most in (
            ("lines", sum(text.count("\n") for text in texts), most_lines),
            ("files", len(texts), most_files),
        ):
            if most is not None and count > most:
                lines.append(f"{folder} has {count:,} {unit} of Python; it should have at most {most:,}")
    return lines


def row(name: str, size: Size) -> str:
    return (
        f"{name:<12}{size.files:>7}{size.lines:>9,}{size.code_lines:>9,}{size.functions:>11,}{size.one_importer:>14,}"
    )


def sizes_of(package: Path) -> dict[str, Size]:
    """The size of each folder of a package; "." holds the modules beside them."""
    sizes: dict[str, Size] = defaultdict(Size)
    importers: Counter[str] = Counter()
    modules = {path: module_of(path, package) for path in sorted(package.rglob("*.py"))}
    for path, module in modules.items():
        text = path.read_text()
        importers.update(set(imported(text)) & set(modules.values()) - {module})
        sizes[folder_of(path, package)].add(size_of(text))
    for path, module in modules.items():
        if importers[module] == 1 and path.name != "__init__.py":
            sizes[folder_of(path, package)].one_importer += 1
    return dict(sizes)


def folder_of(path: Path, package: Path) -> str:
    parts = path.relative_to(package).parts
    return parts[0] if len(parts) > 1 else "."


def module_of(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(text: str) -> list[str]:
    """Names of modules, and of what is taken from them, as dotted names."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def size_of(text: str) -> Size:
    """Of one module."""
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    code = {
        number
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NO_CODE
        for number in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            code -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return Size(1, text.count("\n"), len(code), len(functions))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
