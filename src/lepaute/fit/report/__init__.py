"""The page that shows a diagnosis to a person, and its file for programs."""

from lepaute.fit.report.page import write_report

__all__ = ["write_report"]
