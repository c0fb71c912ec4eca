"""Experiments that come with Lepaute: `lepaute run NAME`."""

from pathlib import Path


def shipped_experiments() -> dict[str, Path]:
    """The scripts by the names that `lepaute run` takes."""
    folder = Path(__file__).resolve().parent
    return {path.stem.replace("_", "-"): path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}


def name_of_shipped(script: Path) -> str | None:
    """Name by which `lepaute run` calls a script that comes with Lepaute; None for any other."""
    return next((name for name, path in shipped_experiments().items() if path == script), None)
