"""Takes secrets out of what goes into an archive or a log."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, urlsplit

from .secret_forms import PROGRAMS, TOKENS, Program, program_pattern

REDACTED = "(redacted)"
#: Names of variables whose values are secrets.
SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|JWT|WEBHOOK|CONNECTION_?STRING"
    r"|(?<=[A-Z0-9_])(?<!OLD)PWD|_PW(?![A-Z])|LEPAUTE_NOTIFY",
    re.IGNORECASE,
)
#: Of our own: URLs in them have passwords.
_OWN_NAME = "LEPAUTE_"
#: Names that smell and are not: their values are words such as "ubuntu", to be left alone in other texts.
_INNOCENT_NAME = re.compile(
    r"KEYBOARD|KEYMAP|KEYRING|MONKEY|HOCKEY|TURKEY|COMPASS|BYPASS|PASSIVE|AUTHOR(?!I[ZS])|XAUTHORITY|ASKPASS|AUTH_SOCK"
    r"|(?:XDG|DESKTOP)_SESSION|SESSION_(?:MANAGER|TYPE|DESKTOP)|TOKENIZERS?_|PUBLIC_KEY|_KEYS?_?(?:FILE|PATH|DIR)",
    re.IGNORECASE,
)
#: Of such variables a value of letters only is a word ("SORT_KEY=default"), to be left alone in other texts too.
_SURE_NAME = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|COOKIE|PRIVATE|JWT|PWD|_PW", re.IGNORECASE)
_SHORTEST_VALUE = 6
#: Values that say that there is a secret, or none, and are none.
_NO_SECRET = re.compile(
    r"(?:true|false|yes|no|none|null|nil|on|off|required|optional|\*+|\(redacted\))?[).,;]*", re.IGNORECASE
)

_STRONG = (
    r"password|passwd|passphrase|secret"
    r"|(?:api|access|private|secret|account|shared|munge|encryption|signing|master)[_-]?key"
    r"|(?-i:(?<=_)P(?:ASS|WD)|(?:Storage|Dbd?|Database|User|Admin|Auth|Login|Smtp|Proxy)Pass)"
    # Not the first_pass of a program, nor its high_pass.
    r"|(?:ssh|sudo|become|db|database|user|admin|root|login|smtp|mail|bmc|ipmi|ldap|bind|vault|proxy|http)_pass"
)
_WEAK = r"token|jwt|cookie|auth|credentials?|(?<![\w-])pass|(?<![a-z0-9])psk"
#: Also a working directory, a pulse width, a plane wave.
_SHORT = r"(?<![a-z0-9])pwd?(?![\w-])"
_NO_SHORT_SECRET = re.compile(r"[/~.$].*|[-+]?[0-9.]+(?:e[-+]?[0-9]+)?[a-z]{0,2}[).,;:\]}]*", re.IGNORECASE)
#: Ends at quotes, so that JSON stays JSON; a quoted value ends at its own quote, an escaped one (\") at an escaped one.
_VALUE = (
    r"""(?P<quote>\\?["'])?"""
    r"""(?P<value>(?(quote)(?:(?!(?P=quote))(?:\\.|[^\r\n\\]))+|(?:\\(?![nrt"'])[^\s"']|[^\s"'\\])+))"""
)
_OPTION = re.compile(
    rf"(?P<name>(?<![\w-])--?[\w-]{{0,40}}?(?:{_STRONG}|{_WEAK}|pass|(?P<short>(?<=\w[-_])pwd)))"
    rf"(?P<between>=|\\?[\"'],[ \n]{{0,40}}(?=\\?[\"'])|[ \t]{{1,20}}(?!-)){_VALUE}",
    re.IGNORECASE,
)
_ASSIGNMENT = re.compile(
    rf"(?P<name>(?P<strong>{_STRONG})|{_WEAK}|(?P<short>{_SHORT}))"
    rf"(?P<between>\\?[\"']?(?P<space>[ \t]{{0,3}})(?P<sign>=>|=(?!=)|:(?![:/]))[ \t]{{0,3}}){_VALUE}",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(?P<head>(?<![\w-])(?:(?:proxy-)?(?P<login>authorization)|(?P<cookie>(?:set-)?cookie)"
    r"|x-[\w-]{0,30}(?:token|key|auth|secret))"
    r"""\\?["']?[ \t]{0,3}[:=][ \t]{0,3}\\?["']?)(?P<value>[^\r\n"'\\]+)""",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?:basic|bearer|digest|negotiate|token|apikey|aws4\S*|[^ ]{0,200}\d)", re.IGNORECASE)
_FORMS = tuple((token.needle, re.compile(token.pattern)) for token in TOKENS)
_PROGRAM_FORMS = tuple(map(program_pattern, PROGRAMS))
_ANY_PROGRAM = re.compile("|".join(program.names for program in PROGRAMS))
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

    By their form: what `secret_forms` lists, values after `--password`, `token=`, `"secret":` and the like,
    authorisation headers and cookies, private keys. A secret that comes in pieces is not seen: give it whole lines, of
    a key the whole block. Nor is one in a form of its own, in no variable. Time is linear in the text's length.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        literals: set[str] = set()
        for name, value in environ.items():
            word = value.isalpha() and not _SURE_NAME.search(name)
            if name.startswith(_OWN_NAME):
                literals.update(form for secret in _url_secrets(value) for form in _forms(secret))
            if SECRET_NAME.search(name) and not _INNOCENT_NAME.search(name) and not word:
                literals.update(_forms(value) | _forms(value.strip()))
        ordered = sorted(literals, key=lambda text: (-len(text), text))  # the longest that fits wins
        self._literals = re.compile("|".join(map(_literal, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """The text without secrets; redacting it again changes nothing."""
        if self._literals is not None:
            text = self._literals.sub(REDACTED, text)
        lower = text.lower()
        if "private key" in lower:
            text = _without_keys(text)
        for needle, pattern in _FORMS:
            if needle in lower:
                text = pattern.sub(_token, text)
        if _ANY_PROGRAM.search(text):
            for pattern in _PROGRAM_FORMS:
                text = pattern.sub(_program, text)
        if any(word in lower for word in ("authorization", "cookie", "x-")):
            text = _HEADER.sub(_header, text)
        if any(
            word in lower
            for word in ("pass", "pw", "secret", "key", "token", "jwt", "cookie", "auth", "credential", "psk")
        ):
            text = _OPTION.sub(_option, text)
            text = _ASSIGNMENT.sub(_assignment, text)
        return text

    def data(self, data: bytes) -> bytes:
        """As text(), for the bytes of a file or a stream in whatever encoding."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def argv(self, argv: Iterable[str]) -> list[str]:
        """A command line, where the value of an option may be the next word."""
        words = list(argv)
        redacted = [self.text(word) for word in words]
        for place, word in enumerate(words[:-1]):
            following = words[place + 1]
            takes_value = _OPTION.fullmatch(f"{word} x") is not None and "=" not in word
            if takes_value and not following.startswith("-") and not _NO_SECRET.fullmatch(following):
                redacted[place + 1] = REDACTED
        for place, replacement in _by_program(words):
            redacted[place] = replacement
        return redacted

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """All variables; the whole value is replaced where the name sounds like a secret."""
        return {name: self.variable(name, value) for name, value in variables.items()}

    def variable(self, name: str, value: str) -> str:
        """The value of a variable: nothing of it where the name sounds like a secret, or it is a URL of our own."""
        own = name.startswith(_OWN_NAME) and "://" in value
        return REDACTED if value and (own or SECRET_NAME.search(name)) else self.text(value)


def _url_secrets(value: str) -> set[str]:
    """The URLs of a value, several with spaces between, and their passwords."""
    urls = {word for word in value.split() if "://" in word}
    passwords = set()
    for url in urls:
        with contextlib.suppress(ValueError):
            passwords.add(urlsplit(url).password or "")
    return urls | passwords


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


def _by_program(words: list[str]) -> Iterator[tuple[int, str]]:
    """Places in a command line, and what is shown there, of the secrets that a program is given (`PROGRAMS`)."""
    for place, word in enumerate(words):
        for program in PROGRAMS:
            rest = words[place + 1 :]
            if re.fullmatch(program.names, word.rpartition("/")[2]) and program.verb in (*rest, ""):
                begin = place + 1 + (rest.index(program.verb) if program.verb else 0)
                for number in range(begin, len(words)):
                    yield from _after_option(program, words, number)


def _after_option(program: Program, words: list[str], number: int) -> Iterator[tuple[int, str]]:
    """The secret that word `number` holds, or announces."""
    option = re.match(rf"(?:{program.options})=?", words[number])
    if option is None:
        return
    if re.match(program.value, words[number][option.end() :]):
        yield number, option[0] + REDACTED
    elif option[0] == words[number] and not program.attached:
        following = "".join(words[number + 1 : number + 2])
        if re.match(program.value, following):
            yield number + 1, REDACTED


def _token(match: re.Match[str]) -> str:
    return (match[1] if match.re.groups else "") + REDACTED


def _program(match: re.Match[str]) -> str:
    return f"{match['head']}{match['quote'] or ''}{REDACTED}"


def _header(match: re.Match[str]) -> str:
    value = match["value"].strip()
    innocent = (match["cookie"] and "=" not in value) or (match["login"] and not _LOGIN.match(value))
    return match[0] if innocent or value == REDACTED else f"{match['head']}{REDACTED}"


def _option(match: re.Match[str]) -> str:
    if _NO_SECRET.fullmatch(match["value"]) or (match["short"] and _NO_SHORT_SECRET.fullmatch(match["value"])):
        return match[0]
    return f"{match['name']}{match['between']}{match['quote'] or ''}{REDACTED}"


def _assignment(match: re.Match[str]) -> str:
    value = match["value"]
    if _NO_SECRET.fullmatch(value):
        return match[0]
    if match["short"]:
        # A key in quotes, or at once: not "pw: 12.5 s" and "pwd = /home/bob".
        sure = match["between"][0] in "\\\"'" or (match["sign"] == "=" and not match["space"])
        if not sure or _NO_SHORT_SECRET.fullmatch(value):
            return match[0]
    elif match["strong"] is None:
        # "unexpected token: foo", "num_token=5", "token = next(words)" are not about secrets.
        loose = match["sign"] == ":" or match["space"]
        digits = sum(character.isdigit() for character in value)
        if len(value) < (8 if loose else _SHORTEST_VALUE) or (loose and not digits):
            return match[0]
    return f"{match['name']}{match['between']}{match['quote'] or ''}{REDACTED}"
