"""The class that FILE.py:CLASS names, as command lines and study files have it."""

import hashlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from lepaute.errors import InputError
from lepaute.simulate.apps.own import Application


def names_a_class(text: str) -> bool:
    """Whether a text is FILE.py:CLASS, or FILE.py."""
    return text.partition(":")[0].endswith(".py")


def loaded(text: str, folder: Path | None = None) -> type[Application]:
    """The class; of a file without a class named, the only one that derives from lp.Application.

    folder : that a relative path begins in
    Raises InputError where there is none, with the line where the file itself fails.
    """
    name, _, wanted = text.partition(":")
    path = (folder or Path()) / name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from None
    module_name = f"lepaute_application_{hashlib.sha256(str(path.resolve()).encode() + content).hexdigest()[:16]}"
    module = sys.modules.get(module_name)
    if module is None:
        spec = spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[module_name] = module  # annotations are looked up there while classes are made
        sys.path.insert(0, str(path.resolve().parent))
        try:
            spec.loader.exec_module(module)
        except InputError as error:
            del sys.modules[module_name]
            raise InputError(f"{name}: {error}") from error
        except Exception as error:
            del sys.modules[module_name]
            raise InputError(f"{name}{_line(error, path)}: {type(error).__name__}: {error}") from error
        finally:
            sys.path.pop(0)
    classes = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Application) and value.__module__ == module_name
    }
    if not wanted and len(classes) == 1:
        (wanted,) = classes
    if wanted not in classes:
        known = f"it has {', '.join(classes)}" if classes else "a class that derives from lp.Application is missing"
        raise InputError(
            f"{name} has no application {wanted[:80]!r}; {known}" if wanted else f"{name}: {known}; name one"
        )
    found = classes[wanted]
    found.file_sha256 = hashlib.sha256(content).hexdigest()
    found.summary = f"{wanted} of {path.name}"
    return found


def _line(error: BaseException, path: Path) -> str:
    traceback, line = error.__traceback__, ""
    while traceback is not None:
        if Path(traceback.tb_frame.f_code.co_filename) == path:
            line = f":{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line or (f":{error.lineno}" if isinstance(error, SyntaxError) else "")
