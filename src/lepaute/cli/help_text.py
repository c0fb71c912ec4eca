"""What `--help` of a command shows, the same for all: names of values, sentences, whole summaries, examples.

Typer names values by Python's types (`<list[str]>`) and cuts the summaries in a list of subcommands.
"""

from pathlib import Path
from typing import Any, get_args

#: Of commands, by their words: command lines that show the usual uses.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "calibrate": (
        "lepaute calibrate -o platform.yaml",
        "lepaute calibrate -o two.yaml --nodes 'node[1-2]'",
        "lepaute calibrate -o eight.yaml --scheduler slurm --count 8 --walltime 1:00:00",
    ),
    "platform show": ("lepaute platform show dahu",),
    "platform new": (
        "lepaute platform new --nodes 16 --cores 2x24 --dgemm 45G --link 100Gb --memory 192G -o mine.yaml",
    ),
    "platform synthesize": ("lepaute platform synthesize --nodes 256 --like dahu --spatial 2x -o big.yaml",),
    "predict hpl": (
        "lepaute predict hpl -p dahu --n 20k --nb 128 --grid 8x8",
        "lepaute predict hpl -p dahu --n 20k --grid 1x1,1x2,2x2,4x4 --plot scaling.png",
        "lepaute predict hpl -p dahu --n 20k --grid 8x8 --against depth=0",
        "lepaute predict hpl -p platform.yaml --dat HPL.dat",
    ),
    "predict stencil": (
        "lepaute predict stencil -p dahu --grid 8x8x4 --cells 1024x1024x512 --cell-time 2e-9 --noise 0.02",
    ),
    "emulate": ("lepaute emulate -p dahu -np 64 --source FOLDER --fold 1M -- PROGRAM ARGS",),
    "emulate program": (
        "lepaute emulate -p dahu -np 64 --source FOLDER --fold 1M -- PROGRAM ARGS",
        "lepaute emulate -p dahu -np 1,2,4,8 --source FOLDER --plot scaling.png -- PROGRAM ARGS",
    ),
    "emulate hpl": ("lepaute emulate hpl -p dahu --n 20k --nb 128 --grid 8x8",),
    "verify hpl": (
        "lepaute verify hpl -p platform.yaml --n 4000,8000 --grid 1x2",
        "lepaute verify hpl -p two.yaml --n 20k --grid 8x8 --nodes 'node[1-2]'",
        "lepaute verify hpl -p platform.yaml --results HPL.out",
    ),
    "design factorial": (
        "lepaute design factorial -f size_bytes=1,1Ki,1Mi -f op=send,recv --replications 10 -o design.csv",
    ),
    "design latin": ("lepaute design latin -f n=loguniform:1:1e6 -f ratio=uniform:0.0:1 --count 100 -o design.csv",),
    "run": (
        "lepaute run EXPERIMENT.py -o ARCHIVE.zip",
        "lepaute run EXPERIMENT.py --nodes 'node[1-4]' --set replications=2",
        "lepaute run memory -o memory.zip",
    ),
    "fit": ("lepaute fit calibration.zip -o platform.yaml --report report.html",),
    "segment": (
        "lepaute segment osu_latency.txt --plot protocols.png",
        "lepaute segment mine.csv --unit us --where operation=send",
    ),
    "compare": (
        "lepaute compare openmpi mpich --ops bcast,allreduce --sizes 1:1M --precision 2% --budget 5min",
        "lepaute compare old=/opt/openmpi-4 new=module:openmpi/5 --np 16 -o versions.zip",
    ),
    "watch ingest": (
        "lepaute watch ingest night-*.zip --store STORE --cluster dahu",
        "lepaute watch ingest values.csv --format csv --mapping mapping.yaml --store STORE",
    ),
    "watch test": (
        "lepaute watch test --store STORE",
        "lepaute watch test --store STORE --node 'dahu-[13-16]' --since 2020-11-01 --factor dgemm_rate_flops",
    ),
    "watch events": (
        "lepaute watch events list --store STORE",
        "lepaute watch events propose --store STORE",
    ),
    "watch events add": (
        "lepaute watch events add --date 2020-11-06 --cluster dahu --node 13/14 --reason 'new fans' --store STORE",
        "lepaute watch events add --date 2020-12-04 --node 29/30 --outlier 1965756 --reason 'power drop' --store STORE",
    ),
    "watch replay": ("lepaute watch replay --store STORE --since 2020-11-01 --until 2020-11-30",),
    "watch cost": (
        "lepaute watch cost dahu-13 --store STORE -p dahu --n 100k --grid 16x16",
        "lepaute watch cost 13 --since 2020-11-06 -p dahu --n 100k --grid 16x16",
    ),
    "record": ("lepaute record -o trace.parquet -- mpirun -np 2 PROGRAM",),
    "trace gantt": ("lepaute trace gantt trace.parquet -o gantt.png --ranks 0-3",),
}
_OF_A_TYPE = {int: "N", float: "X", bool: "0|1", Path: "PATH", str: "TEXT"}


def dress(command: Any, words: str) -> None:
    """Sets the help of a command and of all below it; `words` are those after `lepaute`, such as `predict hpl`."""
    for parameter in command.params:
        _dress_parameter(parameter)
    command.get_short_help_str = lambda *_limit: _first_sentence(command.help or "")
    if words in EXAMPLES:
        # \b keeps the lines of a paragraph as they are.
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[words])
    for name, below in getattr(command, "commands", {}).items():
        dress(below, f"{words} {name}")


def _dress_parameter(parameter: Any) -> None:
    parameter.help = _sentence(parameter.help or "")
    if parameter.param_type_name == "argument":
        # Its type says nothing that its name and its help do not; required is what stands without brackets.
        parameter.display_type_rich = lambda **_context: None
        parameter.metavar = name = parameter.metavar or parameter.name.upper()
        in_usage = name if parameter.required else f"[{name.strip('[]')}]"
        parameter.get_usage_pieces = lambda *_context: [in_usage]
    elif parameter.metavar is None and not parameter.is_flag:
        parameter.metavar = _value_of(parameter.type_descriptor.annotation)


def _value_of(annotation: Any) -> str:
    """What a value is called in the help."""
    kinds = [annotation, *get_args(annotation), *(inner for each in get_args(annotation) for inner in get_args(each))]
    return next((name for kind, name in _OF_A_TYPE.items() if kind in kinds), "TEXT")


def _sentence(text: str) -> str:
    """`text` with a capital and a full stop."""
    text = text.strip()
    if not text:
        return text
    return f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.:!?' else '.'}"


def _first_sentence(text: str) -> str:
    """The first sentence of the help of a command, without its full stop."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".")
