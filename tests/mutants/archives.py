"""Damaged archives, and all that the command line does with one."""

import shutil
import traceback
from collections.abc import Iterator
from pathlib import Path

from archive_mutants import mutate_archives
from archive_readers import OPENED, read_everything
from support_archive import Node, experiment_archive, failed_archive

from lepaute.measure.archive import Archive
from lepaute.measure.archive.setups import setup_of
from mutants.readers import FAILED, READ, REFUSED, Outcome


def archive_outcomes(first: int, count: int, seed: int, folder: Path) -> Iterator[Outcome]:
    """The outcomes of `count` mutants numbered from `first` on; they depend on seed, first and their place.

    A mutant that fails is kept beside the folder, and named in the problem.
    """
    originals = [
        experiment_archive(folder / "whole.zip"),
        failed_archive(folder / "failed.zip"),
        experiment_archive(folder / "small.zip", [Node("node1")]),
    ]
    whole = Archive.open(originals[0])
    other, known = setup_of(whole), frozenset(whole.members())
    mutant = folder / "mutant.zip"
    for at, way in enumerate(mutate_archives(originals, mutant, count, seed * 1_000_003 + first)):
        try:
            opened = read_everything(mutant, other, folder / "out", known) == OPENED
        except Exception:  # noqa: BLE001  what is looked for
            kept = folder.parent / f"failed-{seed}-{first + at}.zip"
            shutil.copy(mutant, kept)
            yield Outcome(first + at, way, FAILED, f"{kept}: {traceback.format_exc(limit=-4)}")
        else:
            yield Outcome(first + at, way, READ if opened else REFUSED)
