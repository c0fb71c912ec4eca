"""Mail, chat and webhooks, through Apprise (https://github.com/caronc/apprise), by its URLs."""

import hashlib
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lepaute.errors import EnvironmentProblem, InputError

#: Apprise's words for an answer that sends the message elsewhere.
_REDIRECT = re.compile(r"\berror[=:] ?(30[0-9])\b")


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
            if redirect := _REDIRECT.search(why):
                why = f"the answer is a redirect, {redirect[1]}, which is not followed; give the address it leads to"
            raise EnvironmentProblem(f"{self.name}: the message could not be sent{f': {why}' if why else ''}")


def channels_of(urls: Iterable[str]) -> list[AppriseChannel]:
    """The channels of Apprise's URLs; raises InputError, without repeating a password, for what is none.

    No redirect is followed, whatever a URL says: a message that was posted would become a question without a body,
    and the answer to that would count as its arrival.
    """
    import apprise

    asset = apprise.AppriseAsset(http_redirects=False)

    channels = []
    for number, url in enumerate(urls, 1):
        # its own warnings would repeat the URL
        logging.getLogger("apprise").setLevel(logging.CRITICAL)
        service = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
        logging.getLogger("apprise").setLevel(logging.WARNING)
        if service is None:
            kind = url.partition("://")[0][:20] if "://" in url else "no URL"
            raise InputError(
                f"--notify: number {number} ({kind}) is no URL of Apprise; write one such as "
                "mailto://USER:PASSWORD@example.org, or jsons://example.org/hook"
            )
        service.redirects = False
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
