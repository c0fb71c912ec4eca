"""Python files of users: what runs is compiled from the bytes that are read, hashed and kept, never from bytecode.

What they print goes to standard error where a command's standard output has its answer alone.
"""

import ast
import ctypes
import hashlib
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib import machinery
from importlib.util import decode_source, find_spec, module_from_spec, spec_from_file_location
from itertools import count
from os.path import dirname
from pathlib import Path
from threading import Event, Thread, get_ident
from traceback import walk_tb
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeVar

from lepaute.errors import InputError
from lepaute.kit.printable import PrintableStream

Base = TypeVar("Base")
_PROGRAMS: "dict[str, Program]" = {}
#: The latest program of each file.
_FILES: "dict[str, Program]" = {}
_NUMBERS = count()
#: Folders that hold what is installed; a file there has no folder of its own.
_INSTALLED = frozenset(("site-packages", "dist-packages"))
#: Folders of files that are no inputs of a program: of the system, and of the interpreter.
_NO_INPUTS = (
    *("/proc/", "/sys/", "/dev/", *(f"{Path.home()}/{folder}/" for folder in (".cache", ".config"))),
    *{os.path.realpath(place) + "/" for place in (sys.prefix, sys.base_prefix, Path(__file__).parent.parent)},
)
#: A program that is at one place for so long does not end.
LONGEST_SILENCE_S = 300.0
_CHECK_EVERY_S = 1.0
#: Functions that draw from a generator of all, or tell what is another thing in each run.
_GENERATORS = re.compile(r"(?:random|numpy\.random)\.(?!(?:seed|getstate|setstate|get_state|set_state)$)[a-z_]+")
_RNG_CONSTRUCTORS = re.compile(
    r"random\.Random|numpy\.random\.(?:default_rng|RandomState|SeedSequence|PCG64|MT19937|Philox)"
)
_NONDETERMINISTIC_CALLS = re.compile(
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


class _Source:
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
        """Texts that may name the environment variables that it reads; empty if it reads none."""
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
    def draws(self) -> list[tuple[str, bool]]:
        """Its calls that no seed repeats, as `app.py:12: random.random()`, and whether whatever it does with them."""
        calls = [(node, self._called(node)) for node in self._of(ast.Call)]
        seeded = not _SEEDS.isdisjoint(name for node, name in calls if node.args or node.keywords)
        draws = []
        for node, name in calls:
            if _RNG_CONSTRUCTORS.fullmatch(name):
                surely = None if node.args or node.keywords else True
            elif _GENERATORS.fullmatch(name):
                surely = not seeded
            else:
                surely = not _CLOCKS.match(name) if _NONDETERMINISTIC_CALLS.fullmatch(name) else None
            if surely is not None:
                draws.append((f"{self.name}:{node.lineno}: {name}()", surely))
        return draws

    def _of(self, *classes: type) -> Iterator[Any]:
        return (node for node in ast.walk(self._tree) if isinstance(node, classes))

    def _called(self, call: ast.Call) -> str:
        """The full name of what is called, as far as the file tells it."""
        parts: list[str] = []
        node: ast.expr = call.func
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        base = node.id if isinstance(node, ast.Name) else ""
        return ".".join([self._names.get(base, "" if parts else base), *reversed(parts)])


class Program:
    """A file that was run as a module, and what it imports from its own folder.

    sources: what was compiled of each file, the program's own first
    inputs : SHA-256 of the files that it read while it was loaded
    """

    _hearing: "dict[str, str] | None"

    def __init__(self, path: Path) -> None:
        """Raises InputError if it cannot be read, and, with the line, where it fails."""
        self.shown, self.path, self.folder = path, path.absolute(), path.resolve().parent
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        self.sources: dict[Path, bytes] = {}
        self.inputs: dict[str, str] = {}
        self._hearing = self.inputs
        self.unseen: set[str] = set()  # files that it has read when nobody could tell what for
        self._texts: dict[Path, _Source] = {}
        self._keep: Callable[[str, bytes], None] = lambda _name, _source: None
        loader = _Loader(f"lepaute_file_{next(_NUMBERS)}", str(self.path))
        loader.program, loader.content = self, content
        spec = spec_from_file_location(loader.name, self.path, loader=loader)
        assert spec is not None
        self.module = module_from_spec(spec)
        _PROGRAMS[loader.name] = self
        others = {
            name: sys.modules.pop(name)
            for name in _imported_from({str(program.folder) for program in _PROGRAMS.values()})
        }
        sys.modules[loader.name] = self.module  # annotations are looked up there while classes are made
        if self.folder.name not in _INSTALLED:
            self.claim(str(self.folder))
        sys.path.insert(0, str(self.folder))
        _listen()
        try:
            with self.watched(lambda: (len(self.sources), "")):
                loader.exec_module(self.module)
            self._hearing = None
            self._modules = sorted(self._foreign_modules())
            self._own = [(self._name(path), hashlib.sha256(text).hexdigest()) for path, text in self.sources.items()]
            self._state = self._state_of_inputs()
        except (Exception, SystemExit) as error:
            del sys.modules[loader.name], _PROGRAMS[loader.name]
            raise InputError(f"{path}{line_in(error, path)}: {Program.failure_text(error)}") from error
        finally:
            sys.path.remove(str(self.folder))
            sys.modules.update(
                (name, each)
                for name, each in others.items()
                if not isinstance(getattr(each, "__loader__", None), _Loader)
            )

    def claim(self, folder: str) -> None:
        """From now on modules in a folder, which is its own or that of a package there, are read for this program."""
        sys.path_importer_cache[folder] = _Finder(folder, self)

    def compiled(self, path: Path, source: bytes) -> None:
        self.sources[path] = source
        _FILES[str(path)] = self
        lines = decode_source(source).splitlines(keepends=True)
        linecache.cache[str(path)] = (len(source), None, lines, str(path))  # tracebacks show what ran
        self._keep(self._name(path), source)

    def keep(self, keep: Callable[[str, bytes], None]) -> None:
        """Has all sources kept by their names in the folder, and those that are imported later."""
        self._keep = keep
        for path, source in list(self.sources.items()):
            self._keep(self._name(path), source)

    def _name(self, path: Path) -> str:
        return path.name if path == self.path else path.relative_to(self.folder).as_posix()

    @property
    def changed(self) -> bool:
        """Whether a file is no longer what ran, or an environment variable that it reads what it was."""
        try:
            same = all(path.read_bytes() == source for path, source in self.sources.items())
            return not same or self._state != self._state_of_inputs()
        except OSError:
            return True

    def _state_of_inputs(self) -> list[Any]:
        states = [(of.st_ino, of.st_size, of.st_mtime_ns) for of in (Path(path).stat() for path in self.inputs)]
        return [*states, self._environment()]

    def _environment(self) -> list[tuple[str, str]]:
        names = {name for text in self.texts() for name in text.variables}
        return sorted((name, os.environ[name]) for name in names if name in os.environ)

    def texts(self) -> list[_Source]:
        for path, source in list(self.sources.items()):
            if path not in self._texts:
                self._texts[path] = _Source(source, self._name(path))
        return list(self._texts.values())

    def _foreign_modules(self) -> set[str]:
        """What it imports besides, also what its functions will: of packages the version, of others the text."""
        to_see, seen, rests = {name for text in self.texts() for name in text.modules}, {"lepaute"}, set()
        while to_see - seen:
            seen.add(name := min(to_see - seen))
            top = name.partition(".")[0]
            to_see.add(top)
            if top in sys.stdlib_module_names or (file := _file_of(name)) is None:
                continue
            if not _INSTALLED.isdisjoint(file.parts):
                rests.add(f"{top} {_version(top)}")
            elif file not in self.sources and not os.path.realpath(file).startswith(_NO_INPUTS):
                content = file.read_bytes()
                with suppress(SyntaxError, ValueError):  # of another Python: it is not imported here
                    to_see |= _Source(content, name).modules
                rests.add(f"{name} {hashlib.sha256(content).hexdigest()}")
        return rests

    @contextmanager
    def heard(self) -> Iterator[dict[str, str]]:
        """SHA-256 of the files that it reads meanwhile."""
        before, self._hearing = self._hearing, {}
        try:
            yield self._hearing
        finally:
            self._hearing = before

    def reads(self, path: str) -> None:
        place = os.path.realpath(path)
        if place.startswith(_NO_INPUTS) or place.endswith((".py", ".pyc", ".so")):
            return
        if self._hearing is None:
            self.unseen.add(place)
        elif place not in self._hearing:
            with suppress(OSError):  # it cannot read that either
                self._hearing[place] = ""  # while it is read here; so does what is no file
                if Path(place).is_file():
                    self._hearing[place] = hashlib.sha256(Path(place).read_bytes()).hexdigest()

    @property
    def sha256(self) -> str:
        """Of the file, or where its results rest on more of all that: the modules that it imports, the files that it
        has read while it was loaded, the environment variables that it names."""
        (_, digest), *others = self._own
        inputs = sorted((os.path.relpath(path, self.folder), of_file) for path, of_file in self.inputs.items())
        besides = [*sorted(others), *inputs, *self._modules, *self._environment()]
        return hashlib.sha256(repr((digest, besides)).encode()).hexdigest() if besides else digest

    def chosen(self, base: type[Base], name: str | None, how: str) -> type[Base]:
        """The class that the file defines and that derives from `base`; `name` where it has several, given `how`."""
        classes = {
            key: value
            for key, value in vars(self.module).items()
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == self.module.__name__
        }
        if not name and len(classes) == 1:
            (name,) = classes
        if name in classes:
            return classes[name]
        known = (
            f"it has {', '.join(classes)}" if classes else f"a class that derives from lp.{base.__name__} is missing"
        )
        which = f" defines no class {name[:80]!r};" if name else ":"
        raise InputError(f"{self.shown}{which} {known}{'' if name or not classes else f'; name one: {how}'}")

    @staticmethod
    def fault(error: BaseException) -> str:
        """`app.py:12: what`, of what a program raised, or what that calls of others; empty if neither did."""
        place = _place_in_program(error, ours="")
        return f"{place}: {Program.failure_text(error)}" if place else ""

    @staticmethod
    def failure_text(error: BaseException) -> str:
        """What a program ended with, for who is to mend it."""
        if isinstance(error, SystemExit):
            return f"ends the command (sys.exit({error.code!r:.40})); raise an exception where something is wrong"
        return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"

    @staticmethod
    def divert_prints() -> None:
        """From now on what programs print goes to standard error."""
        if isinstance(sys.stdout, PrintableStream):
            sys.stdout.is_elsewhere = lambda: _running() is not None

    @staticmethod
    @contextmanager
    def watched(progress: Callable[[], tuple[int, str]]) -> Iterator[None]:
        """Ends what a program does in this thread where `progress` stays the same number for LONGEST_SILENCE_S, or says
        what is wrong; raises InputError, with the line where it was."""
        thread, done, reason = get_ident(), Event(), ""

        def watch() -> None:
            nonlocal reason
            before, silent_s = -1, 0.0
            while not reason and not done.wait(_CHECK_EVERY_S):
                now, reason = progress()
                silent_s = silent_s + _CHECK_EVERY_S if now == before else 0.0
                before = now
                if not reason and silent_s >= LONGEST_SILENCE_S:
                    reason = f"has been at work for {silent_s:.0f} s, and nothing has come of it; does it end?"
            if reason:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Stuck))

        Thread(target=watch, daemon=True).start()
        try:
            yield
        except BaseException as error:
            if not reason:
                raise
            place = _place_in_program(error)
            raise InputError(reason if reason.startswith(place) else f"{place}: {reason}") from error
        finally:
            done.set()


def program_of(cls: type) -> Program | None:
    return _PROGRAMS.get(cls.__module__)


def _place_in_program(error: BaseException, ours: str | None = None) -> str:
    """`app.py:12`; ours : in the place of that, where it was raised by what the program calls of Lepaute."""
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        if frame.f_code.co_filename in _FILES:
            place = f"{Path(frame.f_code.co_filename).name}:{line}"
        elif ours is not None and str(frame.f_globals.get("__name__", "")).startswith("lepaute."):
            place = ours
    return place


def _running() -> Program | None:
    """The innermost program of this thread."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None and frame.f_code.co_filename not in _FILES:
        frame = frame.f_back
    return None if frame is None else _FILES[frame.f_code.co_filename]


@cache
def _listen() -> None:
    """From now on what programs read is written down."""
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or isinstance(arguments[0], int):
        return
    path, mode, flags = arguments
    to_write = set(mode) & set("wax+") if isinstance(mode, str) else flags & (os.O_WRONLY | os.O_RDWR)
    if not to_write and (program := _running()) is not None:
        program.reads(os.fsdecode(path))


class _Stuck(BaseException):
    """Raised in a thread from outside."""


def _file_of(module: str) -> Path | None:
    """The text of a module, as Python would find it now without importing anything; None if there is none."""
    top, *below = module.split(".")
    with suppress(ImportError, ValueError):
        if (spec := find_spec(top)) is not None:
            folders = [Path(place, *below) for place in spec.submodule_search_locations or ()]
            files = [file for folder in folders for file in (folder / "__init__.py", folder.with_suffix(".py"))]
            return next((file for file in (files if below else [Path(str(spec.origin))]) if file.is_file()), None)
    return None


def _version(package: str) -> str:
    from importlib import metadata

    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return " ".join(f"{name} {metadata.version(name)}" for name in metadata.packages_distributions().get(package, ()))


def line_in(problem: BaseException, path: Path | None) -> str:
    """`:12`, the line of the file in which it happened, where it did."""
    place = "" if path is None else str(path.absolute())
    lines = [line for frame, line in walk_tb(problem.__traceback__) if frame.f_code.co_filename == place]
    if not lines and isinstance(problem, SyntaxError) and problem.lineno is not None:
        lines = [problem.lineno]
    return f":{lines[-1]}" if lines else ""


class _Loader(machinery.SourceFileLoader):
    """Compiles what it reads, and tells its program; content: where that has been read."""

    program: Program
    content: bytes | None = None

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - as importlib has it
        path = str(self.path)
        source = self.get_data(path) if self.content is None else self.content
        code: CodeType = self.source_to_code(source, path)
        self.program.compiled(Path(path), source)
        return code


class _Finder(machinery.FileFinder):
    """Finds the modules in a folder of a program."""

    def __init__(self, folder: str, program: Program) -> None:
        extensions = (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES)
        super().__init__(folder, extensions, (_Loader, machinery.SOURCE_SUFFIXES))
        self._program = program

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> machinery.ModuleSpec | None:
        spec = super().find_spec(fullname, target)
        if spec is not None and isinstance(spec.loader, _Loader):
            spec.loader.program = self._program
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            self._program.claim(folder)
        return spec


def _imported_from(folders: set[str]) -> list[str]:
    """The modules that were imported from folders of programs, by whomever: each program imports its own anew."""
    names: list[str] = []
    for name, module in list(sys.modules.items()):
        top, spec = name.partition(".")[0], getattr(module, "__spec__", None)
        if spec is None or name in _PROGRAMS or top in ("__main__", "lepaute"):
            continue
        places = spec.submodule_search_locations or [spec.origin or ""]
        in_folder = top in names or (top == name and not folders.isdisjoint(map(dirname, places)))
        if in_folder and not isinstance(spec.loader, machinery.ExtensionFileLoader):
            names.append(name)
    return names
