"""Command lines drawn at random end as they should; `random_lines.py` runs as many as are wanted."""

from pathlib import Path

import pytest
from hostile.random_lines import SET, wrong_lines


@pytest.mark.slow
@pytest.mark.parametrize("count", [62, pytest.param(SET, marks=pytest.mark.long)])
def test_no_line_drawn_at_random_breaks(count: int, tmp_path: Path) -> None:
    wrong = list(wrong_lines(count, count + 1, tmp_path, count))
    assert not wrong, "\n".join(wrong)
