"""Numbers as short as a picture needs them, and files of data that a page loads without a server."""

import json
import math
from collections.abc import Iterable
from typing import Any


def short(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """So many significant digits; None for what is no number."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]


def script_of(data: Any) -> str:
    """A script that leaves the data in window.lepaute: pages that are files may load scripts, but nothing else."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return f"window.lepaute = {text};\n"
