"""What is wrong with fitted models, and with what they were fitted to: checks, flags, and a sentence for each."""

from lepaute.fit.diagnostics.diagnosis import Diagnosis, Subject, diagnose
from lepaute.fit.diagnostics.flag import Check, Flag

__all__ = ["Check", "Diagnosis", "Flag", "Subject", "diagnose"]
