"""Where what is built on this machine is kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """$LEPAUTE_HOME, else ~/.cache/lepaute."""
    home = os.environ.get("LEPAUTE_HOME")
    return Path(home).expanduser() if home else Path.home() / ".cache" / "lepaute"
