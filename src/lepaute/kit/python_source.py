"""What the text of a program says of its results: what they rest on besides it, and what no seed repeats."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

#: Functions that draw from a generator of all, or tell what is another thing in each run.
_GENERATORS = re.compile(r"(?:random|numpy\.random)\.(?!(?:seed|getstate|setstate|get_state|set_state)$)[a-z_]+")
_UNSEEDED = re.compile(r"random\.Random|numpy\.random\.(?:default_rng|RandomState|SeedSequence|PCG64|MT19937|Philox)")
_SYSTEM = re.compile(
    r"random\.SystemRandom|os\.(?:u|get)random|uuid\.uuid[14]|secrets\.[a-z_]+|os\.getp?pid|datetime\.date\.today|"
    r"time\.(?:(?:time|perf_counter|monotonic|process_time|thread_time)(?:_ns)?|localtime|gmtime|ctime)|"
    r"datetime\.datetime\.(?:now|today|utcnow)"
)
_CLOCKS = re.compile(r"time\.|os\.getp|datetime\.")
_SEEDS = {"random.seed", "numpy.random.seed"}
#: Last names of functions that read files.
_READERS = frozenset(
    "open read_text read_bytes load loadtxt genfromtxt fromfile memmap read_csv read_json read_parquet read_excel "
    "read_table read_hdf imread mmread loadmat".split()
)


@dataclass(frozen=True)
class Draw:
    """A call whose value no seed repeats, as `app.py:12: random.random()`; surely: whatever the program does with it."""

    text: str
    surely: bool


class Source:
    """A file of a program, called `name` in messages."""

    def __init__(self, text: bytes, name: str) -> None:
        self.name, self._tree = name, ast.parse(text)
        self._names: dict[str, str] = {}  # as the file writes them -> in full
        #: The full names of what it imports: modules, and what may be one.
        self.modules: set[str] = set()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import):
                self.modules |= {name.name for name in node.names}
                tops = ((name, name.name.partition(".")[0]) for name in node.names)
                self._names |= {name.asname or top: name.name if name.asname else top for name, top in tops}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                self.modules |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
                self._names |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}

    @cached_property
    def variables(self) -> set[str]:
        """Texts that may name the environment variables that it reads; empty where it reads none."""
        words = {
            node.attr if isinstance(node, ast.Attribute) else node.id for node in self._of(ast.Attribute, ast.Name)
        }
        if words.isdisjoint(("environ", "environb", "getenv", "expandvars")):
            return set()
        return {node.value for node in self._of(ast.Constant) if isinstance(node.value, str) and node.value}

    @cached_property
    def reads_late(self) -> bool:
        """Whether its functions may read files, which loading the program does not show."""
        inside = (node for function in self._of(ast.FunctionDef, ast.Lambda) for node in ast.walk(function))
        calls = (node for node in inside if isinstance(node, ast.Call))
        return any(self._called(call).rpartition(".")[2] in _READERS for call in calls)

    @cached_property
    def draws(self) -> list[Draw]:
        """Its calls whose results no seed repeats."""
        calls = [(node, self._called(node)) for node in self._of(ast.Call)]
        seeded = not _SEEDS.isdisjoint(name for node, name in calls if node.args or node.keywords)
        draws = []
        for node, name in calls:
            if _UNSEEDED.fullmatch(name):
                surely = None if node.args or node.keywords else True
            elif _GENERATORS.fullmatch(name):
                surely = not seeded
            else:
                surely = not _CLOCKS.match(name) if _SYSTEM.fullmatch(name) else None
            if surely is not None:
                draws.append(Draw(f"{self.name}:{node.lineno}: {name}()", surely))
        return draws

    def _of(self, *kinds: type) -> Iterator[Any]:
        return (node for node in ast.walk(self._tree) if isinstance(node, kinds))

    def _called(self, call: ast.Call) -> str:
        """The full name of what is called, as far as the file tells it."""
        parts: list[str] = []
        node: ast.expr = call.func
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        base = node.id if isinstance(node, ast.Name) else ""
        return ".".join([self._names.get(base, "" if parts else base), *reversed(parts)])
