"""Takes secrets out of what goes into an archive or a log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

REDACTED = "(redacted)"
#: Names of variables whose values are secrets.
SECRET_NAME = re.compile(r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|JWT", re.IGNORECASE)
#: Names that smell and are not: their values are words such as "ubuntu", to be left alone in other texts.
_INNOCENT_NAME = re.compile(
    r"KEYBOARD|KEYMAP|KEYRING|MONKEY|HOCKEY|TURKEY|COMPASS|BYPASS|PASSIVE|AUTHOR(?!I[ZS])|XAUTHORITY|ASKPASS|AUTH_SOCK"
    r"|(?:XDG|DESKTOP)_SESSION|SESSION_(?:MANAGER|TYPE|DESKTOP)|TOKENIZERS?_|PUBLIC_KEY|_KEYS?_?(?:FILE|PATH|DIR)",
    re.IGNORECASE,
)
#: Of such variables a value of letters only is a word ("SORT_KEY=default"), to be left alone in other texts too.
_SURE_NAME = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|COOKIE|PRIVATE|JWT", re.IGNORECASE)
_SHORTEST_VALUE = 6
#: Values that say that there is a secret, or none, and are none.
_NO_SECRET = re.compile(
    r"(?:true|false|yes|no|none|null|nil|on|off|required|optional|\*+|\(redacted\))?[).,;]*", re.IGNORECASE
)

_STRONG = r"password|passwd|passphrase|secret|(?:api|access|private|secret)[_-]?key|(?-i:(?<=_)P(?:ASS|WD))"
_WEAK = r"token|jwt|cookie|auth|credentials?|(?<![\w-])pass"
#: Ends at quotes, so that JSON stays JSON; a quoted value ends at its own quote, an escaped one (\") at an escaped one.
_VALUE = (
    r"""(?P<quote>\\?["'])?"""
    r"""(?P<value>(?(quote)(?:(?!(?P=quote))(?:\\.|[^\r\n\\]))+|(?:\\(?![nrt"'])[^\s"']|[^\s"'\\])+))"""
)
_OPTION = re.compile(
    rf"(?P<name>(?<![\w-])--?[\w-]{{0,40}}?(?:{_STRONG}|{_WEAK}|pass))"
    rf"(?P<between>=|\\?[\"'],[ \n]{{0,40}}(?=\\?[\"'])|[ \t]{{1,20}}(?!-)){_VALUE}",
    re.IGNORECASE,
)
_ASSIGNMENT = re.compile(
    rf"(?P<name>(?P<strong>{_STRONG})|{_WEAK})"
    rf"(?P<between>\\?[\"']?(?P<space>[ \t]{{0,3}})(?P<sign>=(?!=)|:(?![:/]))[ \t]{{0,3}}){_VALUE}",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(?P<head>(?<![\w-])(?:(?:proxy-)?(?P<login>authorization)|(?P<cookie>(?:set-)?cookie)"
    r"|x-[\w-]{0,30}(?:token|key|auth|secret))"
    r"""\\?["']?[ \t]{0,3}[:=][ \t]{0,3}\\?["']?)(?P<value>[^\r\n"'\\]+)""",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?:basic|bearer|digest|negotiate|token|apikey|aws4\S*|[^ ]{0,200}\d)", re.IGNORECASE)
#: Pattern and what a text must hold, in lower case, to be worth looking at. All are linear: none can start again
#: inside what it has just passed over, or the length of what it passes over is bounded.
_FORMS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("://", re.compile(r"(://)[^/\s?#\"'<>]{1,1024}@"), rf"\1{REDACTED}@"),
    ("bearer", re.compile(r"\b(bearer[ \t]{1,3})[\w.~+/-]{16,8192}={0,2}", re.IGNORECASE), rf"\1{REDACTED}"),
    ("akia", re.compile(r"\bAKIA[0-9A-Z]{16}\b"), REDACTED),
    ("asia", re.compile(r"\bASIA[0-9A-Z]{16}\b"), REDACTED),
    ("gh", re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,255}"), REDACTED),
    ("github_pat_", re.compile(r"\bgithub_pat_[A-Za-z0-9_]{20,255}"), REDACTED),
    ("gl", re.compile(r"(?<![\w-])gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent)-[\w.-]{16,255}"), REDACTED),
    ("xox", re.compile(r"(?<![\w-])xox[abeoprs]-[\w-]{10,255}"), REDACTED),
    ("sk-", re.compile(r"(?<![\w-])sk-(?:[a-z]{2,8}-)?[A-Za-z0-9_]{32,255}"), REDACTED),
    ("hf_", re.compile(r"\bhf_[A-Za-z0-9]{30,255}"), REDACTED),
    ("pypi-", re.compile(r"(?<![\w-])pypi-[\w-]{50,1024}"), REDACTED),
    ("eyj", re.compile(r"(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"), REDACTED),
)
_KEY_START = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
#: The lines of a key that was cut before its end, escaped line ends (JSON) among them.
_KEY_BODY = re.compile(
    r"(?:\\[nr]|\s|[A-Za-z0-9+/=]{20,}|[A-Za-z0-9-]{1,20}: [^\r\n]{0,200}|[A-Za-z0-9+/]{1,76}={0,2}$)*"
)


class Redactor:
    """Replaces secrets by "(redacted)": those it can tell by their form, and the values of secret variables.

    environ: variables; where the name sounds like a secret (SECRET_NAME) and the value has at least 6 characters, the
             value is replaced wherever it occurs, also as part of a word, in a web address or in JSON.

    By their form: user and password in addresses, values after `--password`, `token=`, `"secret":` and the like,
    authorisation headers and cookies, private keys, web tokens (JWT), keys of AWS, GitHub, GitLab, Slack, PyPI,
    Hugging Face. A secret that comes in pieces is not seen: give it whole lines, of a key the whole block. A secret
    in a form of its own, in no variable (`mysql -phunter2`), is not seen either. Time is linear in the text's length.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        literals: set[str] = set()
        for name, value in environ.items():
            word = value.isalpha() and not _SURE_NAME.search(name)
            if SECRET_NAME.search(name) and not _INNOCENT_NAME.search(name) and not word:
                literals.update(_forms(value.strip()))
        ordered = sorted(literals, key=lambda text: (-len(text), text))  # the longest that fits wins
        self._literals = re.compile("|".join(map(_literal, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """The text without secrets; redacting it again changes nothing."""
        if self._literals is not None:
            text = self._literals.sub(REDACTED, text)
        lower = text.lower()
        if "private key" in lower:
            text = _without_keys(text)
        for needle, pattern, replacement in _FORMS:
            if needle in lower:
                text = pattern.sub(replacement, text)
        if any(word in lower for word in ("authorization", "cookie", "x-")):
            text = _HEADER.sub(_header, text)
        if any(
            word in lower for word in ("pass", "pwd", "secret", "key", "token", "jwt", "cookie", "auth", "credential")
        ):
            text = _OPTION.sub(_option, text)
            text = _ASSIGNMENT.sub(_assignment, text)
        return text

    def data(self, data: bytes) -> bytes:
        """As text(), for the bytes of a file or a stream in whatever encoding."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def argv(self, argv: Iterable[str]) -> list[str]:
        """A command line, where the value of an option may be the next word."""
        words = []
        expected = False
        for word in argv:
            hide = expected and not word.startswith("-") and not _NO_SECRET.fullmatch(word)
            words.append(REDACTED if hide else self.text(word))
            expected = _OPTION.fullmatch(f"{word} x") is not None and "=" not in word
        return words

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """All variables; the whole value is replaced where the name sounds like a secret."""
        return {
            name: REDACTED if SECRET_NAME.search(name) and value else self.text(value)
            for name, value in variables.items()
        }


def _forms(value: str) -> set[str]:
    """The value of a secret variable as it may occur in a text; empty for what would not be one."""
    if len(value) < _SHORTEST_VALUE or value[0] in "/~" or _NO_SECRET.fullmatch(value):
        return set()
    forms = {value, quote(value, safe=""), quote(value), json.dumps(value)[1:-1]}
    if "\n" in value:
        forms.update(line.strip() for line in value.splitlines() if len(line.strip()) >= 3 * _SHORTEST_VALUE)
    return forms


def _literal(form: str) -> str:
    """A pattern for it: a number is not looked for inside longer ones, which are measurements."""
    return rf"(?<!\d){form}(?!\d)" if form.isdecimal() else re.escape(form)


def _without_keys(text: str) -> str:
    parts = []
    position = 0
    ends = True  # whether there may be an end after the position: looked for once only
    while (start := _KEY_START.search(text, position)) is not None:
        parts += [text[position : start.start()], REDACTED]
        end = _KEY_END.search(text, start.end()) if ends else None
        ends = end is not None
        if end is not None:
            position = end.end()
        else:
            body = _KEY_BODY.match(text, start.end())
            position = body.end() if body else start.end()
    return "".join([*parts, text[position:]])


def _header(match: re.Match[str]) -> str:
    value = match["value"].strip()
    innocent = (match["cookie"] and "=" not in value) or (match["login"] and not _LOGIN.match(value))
    return match[0] if innocent or value == REDACTED else f"{match['head']}{REDACTED}"


def _option(match: re.Match[str]) -> str:
    if _NO_SECRET.fullmatch(match["value"]):
        return match[0]
    return f"{match['name']}{match['between']}{match['quote'] or ''}{REDACTED}"


def _assignment(match: re.Match[str]) -> str:
    value = match["value"]
    if _NO_SECRET.fullmatch(value):
        return match[0]
    if match["strong"] is None:
        # "unexpected token: foo", "num_token=5", "token = next(words)" are not about secrets.
        loose = match["sign"] == ":" or match["space"]
        digits = sum(character.isdigit() for character in value)
        if len(value) < (8 if loose else _SHORTEST_VALUE) or (loose and not digits):
            return match[0]
    return f"{match['name']}{match['between']}{match['quote'] or ''}{REDACTED}"
