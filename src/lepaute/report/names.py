"""Names for links inside a page."""

import hashlib
import re


def anchor(subject: str) -> str:
    """A name for links: letters, digits and dashes of a subject's, whatever else is in it, and never twice the same."""
    plain = re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")[:40]
    return f"{plain}-{hashlib.sha256(subject.encode()).hexdigest()[:6]}"
