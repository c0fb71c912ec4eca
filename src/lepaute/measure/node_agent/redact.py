"""Takes secrets out of what goes into an archive or a log: those of a known form, and those of variables.

The forms are data: each row says where the form is published. Only facts were taken from the sources: a fixed
beginning, an alphabet, a length. To add a form, add a row, and a case to tests/unit/test_redact.py.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, urlsplit

#: The default rules of gitleaks (MIT), https://github.com/gitleaks/gitleaks, config/gitleaks.toml at 009e025.
GITLEAKS = "gitleaks 009e025"


class Token(NamedTuple):
    """needle: what a text must hold, in lower case, to be worth looking at; pattern: group 1, if any, is kept."""

    needle: str
    pattern: str
    source: str


#: All take time in proportion to the text: none starts again inside what it has passed over, or that is bounded.
TOKENS = (
    Token("://", r"(://)[^/\s?#\"'<>]{1,1024}(?=@)", "RFC 3986, section 3.2.1"),
    # A password may have what should be written as %2F; a port has not.
    Token(
        "://",
        r"(://)[^/\s?#\"'<>:@\[]{1,256}:(?!\d{1,5}[/?#])[^\s\"'<>]{1,1024}(?=@)",
        "RFC 3986, section 3.2.1, as people write it",
    ),
    Token("bearer", r"(?i)\b(bearer[ \t]{1,3})[\w.~+/-]{16,8192}={0,2}", "RFC 6750, section 2.1"),
    Token("eyj", r"(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*", "RFC 7519"),
    # Clouds: keys, and addresses that are signed.
    Token("a3t", r"\bA3T[A-Z0-9][A-Z0-9]{16}\b", GITLEAKS),
    *(Token(word.lower(), rf"\b{word}[A-Z0-9]{{16}}\b", GITLEAKS) for word in ("AKIA", "ASIA", "ABIA", "ACCA")),
    Token("aiza", r"\bAIza[\w-]{35}", GITLEAKS),
    Token("ltai", r"\bLTAI[A-Za-z0-9]{20}\b", GITLEAKS),
    Token("q~", r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}", GITLEAKS),
    Token("_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}", GITLEAKS),
    Token("dapi", r"\bdapi[a-f0-9]{32}(?:-\d)?", GITLEAKS),
    Token("hrku-", r"\bHRKU-AA[\w-]{58}", GITLEAKS),
    Token("fm", r"\bfm(?:1[ar]|2)_[A-Za-z0-9+/]{100,4096}={0,3}", GITLEAKS),
    Token("fo1_", r"\bfo1_[\w-]{43}", GITLEAKS),
    Token("sha256~", r"\bsha256~[\w-]{43}", GITLEAKS),
    Token(
        "sig",
        r"(?i)([?&;](?:amp;)?(?:sig|signature|x-(?:amz|goog)-(?:signature|credential|security-token))=)"
        r"[^&\s\"'<>]{8,4096}",
        "Azure: shared access signatures; AWS: Signature Version 4 in query strings; Google: V4 signed URLs",
    ),
    # Where programs are developed, and packages kept.
    Token("gh", r"\bgh[pousr]_[A-Za-z0-9]{20,255}", GITLEAKS),
    Token("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,255}", GITLEAKS),
    Token("gl", r"(?<![\w-])gl(?:pat|dt|rt|cbt|ptt|ft|fct|ffct|soat|imt|oas|agent)-[\w.-]{16,300}", GITLEAKS),
    Token("gr1348941", r"\bGR1348941[\w-]{20}", GITLEAKS),
    Token("atatt3", r"\bATATT3[\w=-]{20,400}", GITLEAKS),
    Token("akcp", r"\bAKCp[A-Za-z0-9]{69}\b", GITLEAKS),
    Token("cmvmd", r"\bcmVmd[A-Za-z0-9]{59}\b", GITLEAKS),
    Token("npm_", r"\bnpm_[A-Za-z0-9]{36}\b", GITLEAKS),
    Token("pypi-", r"(?<![\w-])pypi-[\w-]{50,1024}", GITLEAKS),
    Token("rubygems_", r"\brubygems_[a-f0-9]{48}", GITLEAKS),
    Token("dckr_", r"\bdckr_(?:pat|oat)_[\w-]{20,64}", "docs.docker.com: personal and organization access tokens"),
    Token("pul-", r"\bpul-[a-f0-9]{40}", GITLEAKS),
    # Keepers of secrets.
    Token("hv", r"\bhv[sb]\.[\w-]{90,300}", GITLEAKS),
    Token("atlasv1", r"(?i)\b[a-z0-9]{14}\.atlasv1\.[\w=-]{60,70}", GITLEAKS),
    Token("dp.pt.", r"\bdp\.pt\.[A-Za-z0-9]{43}", GITLEAKS),
    Token("age-secret-key-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", GITLEAKS),
    Token("a3-", r"\bA3-[A-Z0-9]{6}-[A-Z0-9-]{11,12}(?:-[A-Z0-9]{5}){3}\b", GITLEAKS),
    Token("pscale_", r"\bpscale_(?:tkn|oauth|pw)_[\w=.-]{32,64}", GITLEAKS),
    # Messages and measurements.
    Token("xox", r"(?<![\w-])xox[abeoprs]-[\w-]{10,255}", GITLEAKS),
    Token("xapp-", r"(?<![\w-])xapp-\d-[\w-]{10,255}", GITLEAKS),
    Token("hooks.slack", r"(hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/)[\w+/-]{20,255}", GITLEAKS),
    Token(
        "/webhooks/",
        r"(discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/)\d{5,25}/[\w-]{20,255}",
        "discord.com/developers: webhooks",
    ),
    Token("/bot", r"(/bot)\d{6,12}:[\w-]{30,64}", "core.telegram.org/bots/api: making requests"),
    Token(
        "://",
        r"((?<![\w.+-])(?:slack|discord|tgram|msteams|workflows?|gchat|mmosts?|rockets?|gotifys?|ntfys?|pover|pbul|matrixs?"
        r"|signals?|zulip|webex|wxteams|pagerduty|opsgenie|ifttt|twilio)://)[^\s\"'<>(]{8,1024}",
        "github.com/caronc/apprise: URLs of services",
    ),
    Token("webhookb2", r"(webhook\.office\.com/webhookb2/)[\w@/-]{20,512}", GITLEAKS),
    Token("sg.", r"\bSG\.[\w=.-]{66}", GITLEAKS),
    Token("glc_", r"\bglc_[A-Za-z0-9+/]{32,400}={0,3}", GITLEAKS),
    Token("glsa_", r"\bglsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}", GITLEAKS),
    Token("dt0c01.", r"\bdt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}", GITLEAKS),
    Token("nr", r"\bNR(?:AK|II|JS)-[A-Za-z0-9-]{19,32}", GITLEAKS),
    Token("sntry", r"\bsntry[su]_[\w+/=-]{40,512}", GITLEAKS),
    Token("pmak-", r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}", GITLEAKS),
    Token("pnu_", r"\bpnu_[A-Za-z0-9]{36}", GITLEAKS),
    Token("lin_api_", r"\blin_api_[A-Za-z0-9]{40}", GITLEAKS),
    Token("ntn_", r"\bntn_[0-9]{11}[A-Za-z0-9]{35}", GITLEAKS),
    Token("shp", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", GITLEAKS),
    Token("k_", r"\b[rs]k_(?:test|live|prod)_[A-Za-z0-9]{10,99}", GITLEAKS),
    # Services of learning machines.
    Token("sk-", r"(?<![\w-])sk-(?:[a-z]{2,8}-)?(?:[a-z]{3,5}[0-9]{2}-)?[A-Za-z0-9_-]{32,255}", GITLEAKS),
    Token("pplx-", r"\bpplx-[A-Za-z0-9]{48}", GITLEAKS),
    Token("hf_", r"\bhf_[A-Za-z0-9]{30,255}", GITLEAKS),
    Token("api_org_", r"\bapi_org_[A-Za-z0-9]{30,255}", GITLEAKS),
    # Passwords as crypt(3) and others keep them.
    Token("$1$", r"\$1\$[./\w]{1,8}\$[./\w]{22}(?![./\w])", "crypt(5)"),
    Token("$apr1$", r"\$apr1\$[./\w]{1,8}\$[./\w]{22}(?![./\w])", "httpd.apache.org: password formats"),
    Token("$2", r"\$2[abxy]?\$\d\d\$[./\w]{53}", "crypt(5)"),
    *(
        Token(f"${name}$", rf"\${name}\$(?:rounds=\d{{1,9}}\$)?[./\w]{{1,16}}\${hash_}(?![./\w])", "crypt(5)")
        for name, hash_ in (("5", r"[./\w]{43}"), ("6", r"[./\w]{86}"))
    ),
    *(
        Token(f"${name}$", rf"\${name}\$[./\w]{{1,16}}\$[./\w]{{1,86}}\$[./\w]{{43}}", "crypt(5)")
        for name in ("y", "gy")
    ),
    Token(
        "$argon2",
        r"\$argon2(?:id|i|d)\$v=\d{1,4}\$[mtp=,\d]{1,60}\$[A-Za-z0-9+/]{8,128}\$[A-Za-z0-9+/]{16,256}",
        "github.com/P-H-C/phc-winner-argon2",
    ),
    # HOST:PORT:DATABASE:USER:PASSWORD; not an address of hardware or of version 6, nor a line of a compiler.
    Token(
        ":",
        r"(?m)(^(?![0-9a-fA-F:]{1,60}(?:\s|$))(?:[\w.*/-]|\\:){1,255}:(?:\d{4,5}|\*):(?:\*|[A-Za-z_][\w.-]{0,62})"
        r":(?:\*|[A-Za-z_][\w.@-]{0,62}):)[^\s\"']{1,1024}$",
        "postgresql.org: The Password File",
    ),
    # Elements of XML, and settings of PHP.
    Token(
        "</",
        r"(?i)(<(?:[\w.-]{1,40}:)?[\w.-]{0,40}(?:password|passwd|passphrase|secret|api[_-]?key)"
        r"(?:\s[^<>]{0,200})?>)[^<]{1,4096}(?=</)",
        "XML 1.0: elements",
    ),
    Token(
        "define(",
        r"(?i)(\bdefine\(\s{0,5}['\"][\w-]{0,60}(?:PASSWORD|PASSWD|PASS|SECRET|_KEY|_SALT)['\"]\s{0,5},\s{0,5}['\"])"
        r"[^'\"\r\n]{1,1024}",
        "php.net: define",
    ),
    Token(
        "private-lines:",
        r"(?i)(\bPrivate-Lines:[ \t]{0,3}\d{1,4}(?:\s|\\[nr]){1,4})"
        r"(?:[A-Za-z0-9+/=]{1,80}(?:(?:\s|\\[nr]){1,4}|(?![\w+/=-])))+",
        "PuTTY: PPK file format",
    ),
    # A file of passwords: machine HOST login USER password SECRET, words apart by blanks or line ends.
    Token(
        "password",
        r"(?i)((?:\b|(?<=\\[nt]))(?:machine|login|account)(?:\s|\\[nt]){1,20}[^\s\\]{1,256}(?:\s|\\[nt]){1,20}password(?:\s|\\[nt]){1,20})"
        r"[^\s\"'\\]{1,1024}",
        "inetutils: The .netrc file",
    ),
)


class Program(NamedTuple):
    """A program that takes a secret on its command line, behind an option that says nothing.

    names   : a pattern for it
    verb    : a word that must follow, such as "login"; empty for none
    options : the secret is the next word, or follows at once
    attached: the option alone asks for the secret, so that only what follows at once is one
    value   : a pattern for what is a secret there
    """

    names: str
    options: str
    source: str
    verb: str = ""
    attached: bool = False
    value: str = r"[^\s\"'\\]"


PROGRAMS = (
    Program("sshpass", "-p", "sshpass(1)"),
    Program(
        "wandb",
        r"login|--relogin|--cloud|--verify|https?://[^\s\"']{1,200}",
        "docs.wandb.ai: wandb login",
        value=r"(?=[0-9a-f]{40}(?!\w)|wandb_v\d)[^\s\"'\\]",
    ),
    # "-u user" alone asks for the password.
    Program("curl", "-u|-U|--user|--proxy-user", "curl(1), and " + GITLEAKS, value=r"(?=[^\s\"']{0,256}:)[^\s\"'\\]"),
    Program(
        "docker|podman|nerdctl|buildah|skopeo|helm|oras|crane|apptainer|singularity", "-p", "docker-login(1)", "login"
    ),
    Program(r"mysql\w{0,12}|mariadb(?:-\w{1,12})?", "-p", "mysql(1)", attached=True),
    Program("ldap(?:search|add|modify|delete|passwd|whoami)", "-w", "ldapsearch(1)"),
    Program("ipmitool", "-P", "ipmitool(1)"),
    Program("redis-cli", "-a", "redis.io: redis-cli"),
    Program("sqlcmd|bcp", "-P", "learn.microsoft.com: sqlcmd"),
    Program("mongo(?:sh|dump|restore|import|export)?", "-p", "mongodb.com: mongosh"),
    Program("mosquitto_(?:pub|sub|rr)", "-P", "mosquitto_pub(1)"),
    Program("smbclient|rpcclient", "-U", "smbclient(1)", value=r"(?=[^\s\"']{0,256}%)[^\s\"'\\]"),
)

_SEPARATOR = r"(?:[ \t]{1,20}|\\?[\"'],[ \n]{0,40}(?=\\?[\"']))"
_BEFORE = r"[ \t\"'\[]"


def _program_pattern(program: Program) -> re.Pattern[str]:
    """Finds the secret in a command line, or in one that is written as a list of strings (JSON, Python).

    Groups: head, quote, value.
    """
    # Between the program and the option: up to the end of the line, of a list that is written in lines of its own.
    # Bounded, the way to the verb more so: a text may name the program a million times.
    between = r"(?:[^\r\n]|(?<=,)\n){0,400}?"
    verb = rf"(?:[^\r\n]|(?<=,)\n){{0,40}}?{_BEFORE}{program.verb}\b" if program.verb else ""
    # A quote that ends a word of a list is none that begins a secret.
    at_once = r"(?=[^\s\"'\\=])|(?=[\"'][^\s,\]}])"
    after = at_once if program.attached else rf"=|{_SEPARATOR}|{at_once}"
    return re.compile(
        rf"(?P<head>(?<![\w.-])(?:{program.names})\b{verb}{between}{_BEFORE}(?:{program.options})(?:{after}))"
        rf"(?P<quote>\\?[\"'])?(?P<value>{program.value}(?(quote)(?:(?!(?P=quote))(?:\\.|[^\r\n\\]))*|[^\s\"'\\]*))"
    )


REDACTED = "(redacted)"
#: Names of variables whose values are secrets.
SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|JWT|WEBHOOK|CONNECTION_?STRING"
    r"|(?<=[A-Z0-9_])(?<!OLD)PWD|_PW(?![A-Z])|LEPAUTE_NOTIFY",
    re.IGNORECASE,
)
#: Prefix of our own: URLs in them have passwords.
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
_PROGRAM_FORMS = tuple(map(_program_pattern, PROGRAMS))
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
                literals.update(form for secret in _url_secrets(value) for form in _encoded_variants(secret))
            if SECRET_NAME.search(name) and not _INNOCENT_NAME.search(name) and not word:
                literals.update(_encoded_variants(value) | _encoded_variants(value.strip()))
        ordered = sorted(literals, key=lambda text: (-len(text), text))  # the longest that fits wins
        self._literals = re.compile("|".join(map(_literal, ordered))) if ordered else None

    def redact(self, text: str) -> str:
        """The text without secrets; redacting it again changes nothing."""
        if self._literals is not None:
            text = self._literals.sub(REDACTED, text)
        lower = text.lower()
        if "private key" in lower:
            text = _without_keys(text)
        for needle, pattern in _FORMS:
            if needle in lower:
                text = pattern.sub(lambda match: (match[1] if match.re.groups else "") + REDACTED, text)
        if _ANY_PROGRAM.search(text):
            for pattern in _PROGRAM_FORMS:
                text = pattern.sub(lambda match: f"{match['head']}{match['quote'] or ''}{REDACTED}", text)
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
        """As redact(), for the bytes of a file or a stream in whatever encoding."""
        return self.redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def argv(self, argv: Iterable[str]) -> list[str]:
        """A command line, where the value of an option may be the next word."""
        words = list(argv)
        redacted = [self.redact(word) for word in words]
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
        return REDACTED if value and (own or SECRET_NAME.search(name)) else self.redact(value)


def _url_secrets(value: str) -> set[str]:
    """The URLs of a value, several with spaces between, and their passwords."""
    urls = {word for word in value.split() if "://" in word}
    passwords = set()
    for url in urls:
        with contextlib.suppress(ValueError):
            passwords.add(urlsplit(url).password or "")
    return urls | passwords


def _encoded_variants(value: str) -> set[str]:
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
