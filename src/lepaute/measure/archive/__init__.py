"""The record of a campaign: a sealed zip that is also an RO-Crate."""

from lepaute.measure.archive.reader import Archive, Archives, listed
from lepaute.measure.archive.writer import ArchiveWriter

__all__ = ["Archive", "ArchiveWriter", "Archives", "listed"]
