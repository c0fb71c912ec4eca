"""`lepaute examples`: the files of the examples, which come with the package, listed or copied."""

import os
from pathlib import Path
from typing import Annotated

import typer

from lepaute.cli.options import Force, argument, option, reject_other_options
from lepaute.cli.terminal import say
from lepaute.errors import InputError
from lepaute.kit.documents import guess
from lepaute.kit.files import write_atomic
from lepaute.kit.outputs import check_output_folder, check_outputs
from lepaute.kit.printable import terminal_columns
from lepaute.kit.tables import shown_table
from lepaute.kit.text import counted

#: Each folder of the examples, and what it has.
TOPICS = {
    "applications": "MPI programs described in thirty lines of Python, and the same in C",
    "emulation": "C and Fortran programs that run on a simulated machine (lepaute emulate)",
    "experiments": "experiments of your own on nodes (lepaute run)",
    "literature": "published studies, to repeat (lepaute study)",
    "recordings": "a recorded run of LAMMPS, to replay (lepaute predict trace)",
    "stencil": "the C program that lepaute predict stencil simulates",
    "studies": "study files: what if, tuning, sensitivity, capacity (lepaute study)",
    "watch": "two months of twelve nodes, some of which became slow (lepaute watch)",
}


def command(
    context: typer.Context,
    topics: Annotated[
        list[str] | None,
        argument(
            "TOPIC",
            "What to copy; 'all' for everything. Without it the topics are listed.",
            autocompletion=lambda: [*TOPICS, "all"],
        ),
    ] = None,
    output: Annotated[
        Path, option("the folder that gets a folder for each topic", "--output", "-o", metavar="FOLDER")
    ] = Path("examples"),
    force: Force = False,
) -> None:
    """Lists the examples that the documentation uses, or copies those of a topic to ./examples/TOPIC."""
    if not topics:
        reject_other_options(context, set(), "without a TOPIC the examples are listed")
        say("Examples, copied by 'lepaute examples TOPIC':")
        print(shown_table(("topic", "what"), list(TOPICS.items()), terminal_columns(), left=(0, 1)))
        return
    if unknown := [topic for topic in topics if topic not in (*TOPICS, "all")]:
        near = guess(unknown[0], list(TOPICS))
        raise InputError(f"there are no examples of {unknown[0][:60]!r}{near}; 'lepaute examples' lists them")
    chosen, folder = list(TOPICS) if "all" in topics else list(dict.fromkeys(topics)), example_folder()
    sources = {
        output / path.relative_to(folder): path
        for topic in chosen
        for path in sorted((folder / topic).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    check_output_folder(output, "--output")
    check_outputs({"--output": [path for path in sources if os.path.lexists(path)]}, force=force)
    for target, source in sources.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, source.read_bytes())
    say(f"{counted(len(sources), 'file')} in {', '.join(str(output / topic) for topic in chosen)}")


def example_folder() -> Path:
    """Where they are: in the package, or beside its sources in a clone; raises InputError where there are none."""
    package = Path(__file__).parents[1]
    folder = next((place for place in (package / "examples", package.parents[1] / "examples") if place.is_dir()), None)
    if folder is None:
        raise InputError(f"this installation has no examples in {package / 'examples'}; install the package again")
    return folder
