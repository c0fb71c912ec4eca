"""The page of exit statuses: what each means, and which commands end with another one than 0 and 2 and why."""

from markdown_text import Pages, table

from lepaute.cli import entry
from lepaute.simulate.apps import APPLICATIONS
from lepaute.watch.report.summary import EXIT_STATUS, UNKNOWN, UNLIKE

#: A check that was asked for did not pass, or the user's own program failed.
FAILED = 1
#: Status -> what it means, for all commands.
MEANINGS = {
    entry.DONE: "Done.",
    FAILED: "A check did not pass, or a program or an experiment of yours failed. The answer is printed all the same.",
    entry.BAD_INPUT: "No answer: bad input, something missing here, or no data to judge by. One line says what to do.",
    entry.UNDECIDED: "What was measured does not tell: whether a limit that was set holds, whether a machine changed.",
    EXIT_STATUS[UNLIKE]: "A machine is unlike its peers, and whether it has changed is not known (`lepaute watch`).",
    entry.LIBRARY_FAILED: "An MPI library gives wrong results, or an operation of it is missing or ended early.",
    entry.DEFECT: "A defect of Lepaute. The line names the file that has the traceback; please report it.",
    entry.OUT_OF_MEMORY: "Not enough memory, or address space (`ulimit -v`): make the task smaller.",
    entry.INTERRUPTED: "Interrupted, by Ctrl-C (128 + SIGINT).",
    entry.PIPE_CLOSED: "Whoever read the output went away, as `head` does (128 + SIGPIPE).",
}
_TOLERANCE = (
    (FAILED, "with `--tolerance`, a prediction is further off"),
    (entry.UNDECIDED, "with `--tolerance`, every run of a case was disturbed"),
)
_WATCH = (
    (EXIT_STATUS[UNLIKE], "otherwise, where a machine is unlike its peers"),
    (entry.UNDECIDED, "otherwise, where a change for the worse is not confirmed yet"),
    (EXIT_STATUS[UNKNOWN], "otherwise, where nothing is known"),
)
#: Words of a command -> when it ends with a status that says more than done and bad input.
OF_COMMANDS: dict[str, tuple[tuple[int, str], ...]] = {
    **{f"verify command {name}": _TOLERANCE for name in APPLICATIONS if name != "hpl"},
    "verify hpl": (
        *_TOLERANCE,
        (FAILED, "with `--results`, a residual check failed, or without `--tolerance` the runs are slower"),
        (entry.UNDECIDED, "with `--results` and without `--tolerance`, whether they are slower is not known"),
    ),
    "record": ((FAILED, "the recorded program failed; its trace is written"),),
    "learn": ((FAILED, "with `--check`, the learnt class makes other calls than that recording"),),
    "predict hpl": (
        (FAILED, "`lepaute predict FILE.py:CLASS --check`: the class makes other calls than the recording"),
    ),
    "trace compare": ((FAILED, "with `--same`, calls, their order or their sizes differ"),),
    "why": ((FAILED, "a cause is named"), (entry.UNDECIDED, "more than chance, without a cause; too few usual runs")),
    "run": (
        (FAILED, "the experiment failed, or a command of it, or a node was lost; its archive says why"),
        (entry.INTERRUPTED, "interrupted; the archive keeps what was measured, and `--resume` goes on"),
    ),
    "archive verify": ((entry.BAD_INPUT, "an archive is damaged"),),
    "archive diff": ((FAILED, "with `--exit-code`, the setups differ"),),
    "compare": (
        (entry.LIBRARY_FAILED, "a result failed its check, or an operation is missing or ended early, whatever else"),
        (FAILED, "with `--fail-if-slower`, the right library is slower by more"),
        (entry.UNDECIDED, "with `--fail-if-slower`, a row could not be tested, or with `--strict` is undecided"),
    ),
    "doctor": ((entry.BAD_INPUT, "something is missing; warnings alone end with 0"),),
    "platform check": ((entry.BAD_INPUT, "the file has faults"),),
    "watch test": ((FAILED, "a regression is open; with `--strict`, also after a recent test of p < 10⁻⁶"), *_WATCH),
    "watch run": ((FAILED, "a test of a node failed or was not stored, or a node has not been tested for long"),),
    "watch health": ((FAILED, "a node has regressed"), *_WATCH),
    "watch alert": ((entry.BAD_INPUT, "a message could not be sent"),),
}


def status_pages() -> Pages:
    """The page."""
    lines = [
        "# Exit statuses",
        "",
        "What scripts and monitoring systems read. Every command ends with one of these:",
        "",
        *table(("status", "meaning"), [(str(status), text) for status, text in MEANINGS.items()]),
        "`LEPAUTE_DEBUG=1` shows the traceback of an error in place of its line.",
        "",
        "## Of single commands",
        "",
        *table(
            ("command", "status", "when"),
            [
                (f"[`{words}`](commands/{words.split()[0]}.md{anchor})", str(status), text)
                for words, cases in OF_COMMANDS.items()
                for anchor in [f"#lepaute-{words.replace(' ', '-')}" if " " in words else ""]
                for status, text in cases
            ],
        ),
        "`lepaute emulate` and `verify` end with 2 where a program fails, and say how it ended.",
        "",
    ]
    return {"exit_statuses.md": "\n".join(lines)}
