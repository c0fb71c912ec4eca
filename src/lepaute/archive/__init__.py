"""The record of a campaign: a sealed zip that is also an RO-Crate."""

from lepaute.archive.reader import Archive
from lepaute.archive.writer import ArchiveWriter

__all__ = ["Archive", "ArchiveWriter"]
