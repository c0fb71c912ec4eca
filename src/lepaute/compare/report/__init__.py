"""The report of a comparison: a page to read, or the same content for programs."""

from lepaute.compare.report.files import write_report

__all__ = ["write_report"]
