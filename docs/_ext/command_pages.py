"""Pages of the commands, from what their `--help` is made of: one page a command, one section a subcommand."""

import re
from collections.abc import Iterator
from typing import Any

from markdown_text import Pages, escaped, paragraphs, table

from lepaute.cli import COMMANDS, HELP, QUESTIONS
from lepaute.cli.commands import built
from lepaute.cli.examples import EXAMPLES
from lepaute.cli.parsing import grouped, records_of

#: The commands by what they are asked, with the questions of `lepaute help` in their order; and those that set up.
GROUPS: dict[str, tuple[str, ...]] = {
    "How fast would it run?": ("predict", "platform"),
    "And my own program?": ("emulate", "learn"),
    "Is my HPL.out good?": ("verify",),
    "What should I tune, or buy?": ("study",),
    "How fast is this machine?": ("calibrate", "fit", "design", "run", "archive"),
    "Is this node slow?": ("watch",),
    "Which MPI library is faster?": ("compare", "clocks"),
    "Where do message times jump?": ("segment",),
    "Why was my job slow?": ("why",),
    "Where does the time go?": ("record", "trace"),
    "What is installed here?": ("doctor", "examples", "completion"),
}
_EXTRAS = re.compile(r"\s+\[([^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]$")
_BOUNDS = {">=": "≥", "<=": "≤"}


def command_pages() -> Pages:
    """The pages below `commands/`: an index, and one for each command."""
    pages = {"commands/index.md": _index()}
    for command in COMMANDS:
        pages[f"commands/{command.name}.md"] = "\n".join(_page(command.name, command.summary))
    return pages


def each_command(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The words of the command and of all below it that do something themselves, such as `watch events add`."""
    below = getattr(command, "commands", None)
    if not below:
        yield words, command
    for name, one in (below or {}).items():
        yield from each_command(f"{words} {name}", one)


def _index() -> str:
    summaries = {command.name: command.summary for command in COMMANDS}
    asked = dict(QUESTIONS)
    lines = [
        "# Commands",
        "",
        "Every command of `lepaute`, by the question that it answers, with all of its options. The same text is",
        "printed by `lepaute help COMMAND`.",
        "",
    ]
    for question, names in GROUPS.items():
        lines += [f"## {question}", ""]
        if question in asked:
            lines += ["```bash", asked[question], "```", ""]
        for name in names:
            lines += [f"- [`lepaute {name}`]({name}.md): {escaped(summaries[name])}"]
            command, _ = built(name)
            for words, one in each_command(name, command):
                if words != name:
                    lines.append(f"  - [`{words}`]({name}.md#{anchor(words)}): {escaped(one.get_short_help_str())}")
        lines.append("")
    lines += ["```{toctree}", ":hidden:", "", *(name for names in GROUPS.values() for name in names)]
    return "\n".join([*lines, "```", "", "[What a command's exit status says](../exit_statuses.md)", ""])


def anchor(words: str) -> str:
    """Of a section in the page of a command."""
    return f"lepaute-{words.replace(' ', '-')}"


def _page(name: str, summary: str) -> Iterator[str]:
    command, default = built(name)
    one = not getattr(command, "commands", None)
    yield f"# lepaute {name}"
    yield ""
    if not one:
        yield escaped(f"{summary[:1].upper()}{summary[1:]}.")
        yield ""
        if command.help and command.help.strip().rstrip(".").casefold() != summary.casefold():
            yield from paragraphs(command.help)
        if default is not None:
            yield f"`lepaute {name}` without a word that names one of these is `lepaute {name} {default}`."
            yield ""
    for words, below in each_command(name, command):
        if not one:
            yield f"## lepaute {words}"
            yield ""
        yield from _section(words, below, level=2 if one else 3)


def _section(words: str, command: Any, level: int) -> Iterator[str]:
    context = command.context_class(command, info_name=f"lepaute {words}", help_option_names=list(HELP))
    yield from paragraphs(command.help or "")
    yield "```text"
    yield " ".join([f"lepaute {words}", *command.collect_usage_pieces(context)])
    yield "```"
    yield ""
    if words in EXAMPLES:
        yield from ("```bash", *EXAMPLES[words], "```", "")
    if arguments := [record for _, record in records_of(command, context, "argument")]:
        yield from (f"{'#' * level} Arguments", "")
        yield from table(("argument", "what"), [(f"`{name}`", _told(text)) for name, text in arguments])
    yield f":::{{program}} lepaute {words}"
    yield ":::"
    yield ""
    for heading, records in grouped(command, context).items():
        if records:
            yield from (f"{'#' * level} {heading}", "")
            for names, text in records:
                yield from _option(names, text)


def _option(names: str, text: str) -> Iterator[str]:
    """An option of the domain of Sphinx, to which pages can link: `-p, --platform TEXT` says its value once."""
    spellings, _, value = names.partition(" ") if "," not in names and "/" not in names else ("", "", names)
    if value == names:
        *flags, last = re.split(r",\s+|\s+/\s+|/(?=-)", names)
        last, _, value = last.partition(" ")
        spellings = ", ".join(f"{one} {value}".strip() for one in (*flags, last))
    else:
        spellings = names
    yield f":::{{option}} {spellings}"
    yield ""
    yield _told(text)
    yield ":::"
    yield ""


def _told(text: str) -> str:
    """What an option is for, and behind it default, bounds, and whether it must be given."""
    found = _EXTRAS.search(text)
    told = escaped(" ".join(text[: found.start() if found else None].split()))
    for extra in found[1].split("; ") if found else ():
        kind, _, value = extra.partition(": ")
        if kind == "default":
            told += f" Default: `{value}`." if value else " Default: none."
        elif extra == "required":
            told += " **Required.**"
        else:
            bounds = extra.replace("x", "value", 1)
            for sign, shown in _BOUNDS.items():
                bounds = bounds.replace(sign, f" {shown} ")
            told += f" Allowed: {escaped(bounds)}."
    return told
