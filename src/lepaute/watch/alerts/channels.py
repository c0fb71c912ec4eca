"""Mail, chat and webhooks, through Apprise (https://github.com/caronc/apprise), by its URLs."""

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lepaute.errors import EnvironmentProblem, InputError


@dataclass(frozen=True, slots=True)
class AppriseChannel:
    """name : the URL without its secrets, and a few digits of a digest that tell such URLs apart."""

    name: str
    _service: Any = field(repr=False)

    def send(self, title: str, body: str) -> None:
        import apprise

        heard = _Heard()
        logger = logging.getLogger("apprise")
        logger.addHandler(heard)
        before, logger.propagate = logger.propagate, False
        try:
            arrived = self._service.notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT)
        except (OSError, TypeError, ValueError) as error:
            arrived, heard.texts = False, [f"{type(error).__name__}: {error}"]
        finally:
            logger.removeHandler(heard)
            logger.propagate = before
        if not arrived:
            why = "; ".join(" ".join(text.split()) for text in heard.texts)[:300]
            raise EnvironmentProblem(f"{self.name}: the message could not be sent{f': {why}' if why else ''}")


def channels_of(urls: Iterable[str]) -> list[AppriseChannel]:
    """The channels of Apprise's URLs; raises InputError, without repeating a password, for what is none."""
    import apprise

    channels = []
    for number, url in enumerate(urls, 1):
        # its own warnings would repeat the URL
        logging.getLogger("apprise").setLevel(logging.CRITICAL)
        service = apprise.Apprise.instantiate(url, suppress_exceptions=True)
        logging.getLogger("apprise").setLevel(logging.WARNING)
        if service is None:
            kind = url.partition("://")[0][:20] if "://" in url else "no URL"
            raise InputError(
                f"--notify: number {number} ({kind}) is no URL of Apprise; write one such as "
                "mailto://USER:PASSWORD@example.org, or jsons://example.org/hook"
            )
        digest = hashlib.sha256(url.encode()).hexdigest()[:6]
        shown: str = service.url(privacy=True)  # type: ignore[no-untyped-call]
        name = f"{shown.partition('?')[0]} {digest}"
        channels.append(AppriseChannel(name, service))
    return channels


class _Heard(logging.Handler):
    """Keeps what Apprise warns of while a message is sent."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
