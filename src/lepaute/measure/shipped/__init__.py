"""Experiments that come with Lepaute: `lepaute run NAME`."""

from pathlib import Path


def shipped_experiments() -> dict[str, Path]:
    """The scripts by the names that `lepaute run` takes."""
    folder = Path(__file__).resolve().parent
    return {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}
