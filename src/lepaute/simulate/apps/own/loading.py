"""The class that FILE.py:CLASS names, as command lines and study files have it."""

from dataclasses import replace
from pathlib import Path

from lepaute.kit.python_files import Program
from lepaute.simulate.apps.own import Application

_KNOWN: dict[Path, Program] = {}


def names_a_class(text: str) -> bool:
    """Whether a text is FILE.py:CLASS, or FILE.py."""
    return text.partition(":")[0].endswith(".py")


def loaded(text: str, folder: Path | None = None) -> type[Application]:
    """The class; of a file without a class named, the only one that derives from lp.Application.

    folder : that a relative path begins in
    Raises InputError if there is none, with the line where the file itself fails.
    """
    name, _, wanted = text.partition(":")
    Program.divert_prints()
    path = (folder or Path()) / name
    program = _KNOWN.get(path.absolute())
    if program is None or program.changed:
        program = _KNOWN[path.absolute()] = Program(path)
    chosen = program.chosen(Application, wanted, "FILE.py:CLASS")
    chosen.file_sha256 = program.sha256
    chosen.about = replace(chosen.about, summary=f"{chosen.__name__} of {path.name}")
    return chosen
