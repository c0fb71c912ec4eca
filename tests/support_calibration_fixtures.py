"""Fixtures of the tests of calibrations, which name this module among their plugins."""

import os
from pathlib import Path

import pytest
from support_calibration import FakeMachine, fake_machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return fake_machine(tmp_path / "programs", monkeypatch, os.getpid())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Of the archive, in a folder of its own."""
    (tmp_path / "place").mkdir()
    return tmp_path / "place" / "c.zip"
