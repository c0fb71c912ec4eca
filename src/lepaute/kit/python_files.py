"""Python files of users: what runs is compiled from the bytes that are read, hashed and kept, never from bytecode."""

import hashlib
import linecache
import sys
from collections.abc import Callable
from importlib import machinery
from importlib.util import decode_source, module_from_spec, spec_from_file_location
from itertools import count
from os.path import dirname
from pathlib import Path
from traceback import walk_tb
from types import CodeType, ModuleType
from typing import TypeVar

from lepaute.errors import InputError

Base = TypeVar("Base")
_PROGRAMS: "dict[str, Program]" = {}
_NUMBERS = count()
#: Folders that hold what is installed; a file there has no folder of its own.
_INSTALLED = ("site-packages", "dist-packages")


class Program:
    """A file that was run as a module, and what it imports from its own folder.

    sources: what was compiled of each file, the program's own first
    """

    def __init__(self, path: Path) -> None:
        """Raises InputError where it cannot be read, and, with the line, where it fails."""
        self.shown, self.path, self.folder = path, path.absolute(), path.resolve().parent
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        self.sources: dict[Path, bytes] = {}
        self._keep: Callable[[str, bytes], None] = lambda _name, _source: None
        loader = _Loader(f"lepaute_file_{next(_NUMBERS)}", str(self.path))
        loader.program, loader.content = self, content
        spec = spec_from_file_location(loader.name, self.path, loader=loader)
        assert spec is not None
        self.module = module_from_spec(spec)
        _PROGRAMS[loader.name] = self
        others = {
            name: sys.modules.pop(name) for name in _imported_from({str(each.folder) for each in _PROGRAMS.values()})
        }
        sys.modules[loader.name] = self.module  # annotations are looked up there while classes are made
        if self.folder.name not in _INSTALLED:
            self.claim(str(self.folder))
        sys.path.insert(0, str(self.folder))
        try:
            loader.exec_module(self.module)
        except (Exception, SystemExit) as error:
            del sys.modules[loader.name], _PROGRAMS[loader.name]
            text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            raise InputError(f"{path}{line_in(error, path)}: {text}") from error
        finally:
            sys.path.remove(str(self.folder))
            sys.modules.update((name, each) for name, each in others.items() if not _is_ours(each))

    def claim(self, folder: str) -> None:
        """From now on modules in a folder, which is its own or that of a package there, are read for this program."""
        sys.path_importer_cache[folder] = _Finder(folder, self)

    def compiled(self, path: Path, source: bytes) -> None:
        """Writes down what is about to run."""
        self.sources[path] = source
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
        """Whether a file is no longer what ran."""
        try:
            return any(path.read_bytes() != source for path, source in self.sources.items())
        except OSError:
            return True

    @property
    def sha256(self) -> str:
        """Of the file, or where it imports others from its folder of all of them."""
        own, *others = ((self._name(path), hashlib.sha256(text).hexdigest()) for path, text in self.sources.items())
        return hashlib.sha256(repr((own[1], sorted(others))).encode()).hexdigest() if others else own[1]

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


def program_of(cls: type) -> Program | None:
    """The program that defines a class."""
    return _PROGRAMS.get(cls.__module__)


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


def _is_ours(module: ModuleType) -> bool:
    return isinstance(getattr(module, "__loader__", None), _Loader)


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
