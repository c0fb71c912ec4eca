"""The command line: one small module a command; each parses, calls, prints, and decides nothing."""

from typing import NamedTuple


class Command(NamedTuple):
    """A command. place: where in `lepaute.cli` it is, MODULE:NAME; that of the command and `app` unless given.

    `app` is a `typer.Typer` with subcommands, `app_for` makes one for given arguments; anything else is a function with
    Typer's annotations.
    extra: of the package, which all that the command does needs (`kit.extras`)
    """

    name: str
    summary: str
    place: str = ""
    extra: str = ""


COMMANDS = (
    Command("predict", "how long an application will take on a platform", "predict:app_for"),
    Command("emulate", "run the code of an MPI program, or of HPL, on a simulated machine"),
    Command("verify", "predict, run the real application here, show both and the error", "verify:app_for"),
    Command("study", "questions that take many simulations: tune, what if, sensitivity, capacity", extra="study"),
    Command("platform", "list, show, check, import and export platforms; new ones from a data sheet"),
    Command(
        "calibrate", "measure this machine, fit models and write an archive and a platform", "fit:calibrate", "fit"
    ),
    Command("fit", "fit models to archives and write a platform", "fit:fit", "fit"),
    Command("compare", "MPI libraries, measured side by side", "compare:command", "compare"),
    Command(
        "clocks",
        "how far off synchronised clocks are, by which method and for how long: here, on nodes or simulated",
        "clocks:command",
        "fit",
    ),
    Command(
        "watch", "detect machines that have changed, from months of jobs; log events; estimate the cost", extra="watch"
    ),
    Command(
        "segment",
        "the message sizes at which timings change slope or jump, from benchmark output or CSV",
        "segment:command",
    ),
    Command("record", "run a program under MPI and record its kernels and messages", "trace:record", "trace"),
    Command("learn", "make an application of recordings on few ranks, to predict it on many", "learn:command", "trace"),
    Command("trace", "show, draw, break down and compare traces", extra="trace"),
    Command("why", "why a recorded run took longer than usual: what, where and since when", "why:command", "compare"),
    Command("design", "tables of what will be measured", extra="fit"),
    Command("run", "an experiment on one node or many: from a script to an archive", "run:command", "fit"),
    Command("archive", "show, verify, compare and extract archives of measurements"),
    Command("examples", "list and copy the examples of the documentation", "example_files:command"),
    Command("doctor", "what is installed, what is missing, what would disturb a measurement", "doctor:command"),
    Command("completion", "the script with which bash, zsh or fish completes command lines", "commands:completion"),
)

#: What people ask, and the command line that answers.
QUESTIONS = (
    ("How fast would it run?", "lepaute predict hpl -p dahu --n 100k --grid 8x8"),
    ("And my own program?", "lepaute emulate -p dahu -np 64 -- PROGRAM"),
    ("Is my HPL.out good?", "lepaute verify hpl -p dahu --results HPL.out"),
    ("What should I tune, or buy?", "lepaute study ready nb-and-grid -p dahu"),
    ("How fast is this machine?", "lepaute calibrate -o platform.yaml"),
    ("Is this node slow?", "lepaute watch test rates.csv"),
    ("Which MPI library is faster?", "lepaute compare openmpi mpich"),
    ("Where do message times jump?", "lepaute segment osu_latency.txt"),
    ("Why was my job slow?", "lepaute why run.parquet --usual usual/*.parquet"),
    ("Where does the time go?", "lepaute record -o run.parquet -- mpirun PROGRAM"),
)

#: For the commands that are one of the ways, and `lepaute --help`.
WAYS = """Your own program, which way? (docs/howto/which_way.md)
  it has run at that size   record it, then predict trace: seconds
  results, unchanged code   emulate: as long as all ranks compute, on one core
  small runs                record some, then learn: seconds
  no code yet               predict FILE.py:CLASS: half an hour, then seconds"""
SHOW_WAYS = ("predict", "emulate", "emulate program", "record")

#: What asks for the help of any command.
HELP = ("-h", "--help")
