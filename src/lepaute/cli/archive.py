"""`lepaute archive`: what an archive holds, whether it is whole, what differs between two, and its files."""

from pathlib import Path
from typing import Annotated

from lepaute.cli.entry import BAD_INPUT, complain
from lepaute.cli.options import App, AsJson, Details, Force, argument, option
from lepaute.cli.terminal import json_text, say
from lepaute.errors import LepauteError
from lepaute.kit.outputs import check_output_folder
from lepaute.kit.printable import terminal_columns
from lepaute.kit.text import caveat_line, counted, size_text
from lepaute.measure.archive import Archive
from lepaute.measure.archive.extraction import extract as extract_members
from lepaute.measure.archive.metadata import COMPLETE
from lepaute.measure.archive.ro_crate import check_crate

app = App(help="Show, verify, compare and extract archives of measurements.", no_args_is_help=True)

File = Annotated[Path, argument("FILE", "The .zip that a campaign wrote.")]


@app.command()
def show(
    file: File,
    details: Details = False,
    as_json: AsJson = False,
    members: Annotated[bool, option("All members, with their sizes.", "--members")] = False,
) -> None:
    """What the archive is, on one screen; of a failed experiment, why. The archive is verified first."""
    from lepaute.measure.archive.screen import first_facts

    archive = Archive.open(file)
    listed = archive.members()
    if as_json:
        sizes = {name: {"sha256": member.sha256, "size_bytes": member.size_bytes} for name, member in listed.items()}
        print(json_text({"id": archive.id, "metadata": archive.metadata, "members": sizes}))
        return
    answer, facts = first_facts(archive, details=details)
    say(answer, 2, "good" if archive.about.outcome == COMPLETE else "bad")
    for name, text in facts:
        say(f"  {name:<11}{text}", 13)
    if warnings := archive.about.warnings:
        lines = [f"warning: {text}" for text in warnings]
        say("\n".join(lines) if details else caveat_line(warnings, terminal_columns()))
    if members:
        say("\n".join([f"{len(listed)} members:", *(f"  {m.size_bytes:>12}  {at}" for at, m in listed.items())]), 16)


@app.command()
def verify(files: Annotated[list[Path], argument("FILE...", "Archives.")], as_json: AsJson = False) -> int:
    """Checks every byte of archives against seal, manifest and RO-Crate; exit status 2 where one differs."""
    facts: list[dict[str, object]] = []
    lines, damaged = [], []
    for file in files:
        try:
            archive = Archive.open(file)
            check_crate(archive)
        except LepauteError as problem:  # the others are still to be checked
            damaged.append(str(problem))
            facts.append({"path": str(file), "whole": False, "problem": str(problem)})
            continue
        ended, members = archive.about.outcome, len(archive.members())
        facts.append(_facts(archive))
        note = "" if ended == COMPLETE else f" ({ended}: `lepaute archive show` tells why)"
        lines.append(f"{file}: intact, {counted(members, 'member')}, id {archive.id[:12]}{note}")
    if as_json:
        print(json_text({"archives": facts}))
    elif len(files) > 1:
        bad = f"{len(damaged)} of {len(files)} archives {'is' if len(damaged) == 1 else 'are'} not intact"
        say(bad if damaged else f"{'Both' if len(files) == 2 else f'All {len(files)}'} archives are intact")
    for line in [] if as_json else lines:
        say(line)
    for line in damaged:
        complain(line)
    return BAD_INPUT if damaged else 0


def _facts(archive: Archive) -> dict[str, object]:
    members, ended = len(archive.members()), archive.about.outcome
    return {"path": str(archive.path), "whole": True, "members": members, "id": archive.id, "outcome": ended}


@app.command()
def extract(
    file: File,
    output: Annotated[Path, option("Where to.", "-o", "--output", metavar="FOLDER", show_default=False)],
    members: Annotated[list[str] | None, argument("[MEMBER...]", "Members or folders of them; default: all.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Writes members as files into a folder: never outside of it, through a link, or over another file."""
    check_output_folder(output, "--output")
    written = extract_members(Archive.open(file), output, members or (), force=force)
    sizes = {name: (output / name).stat().st_size for name in written}
    size_bytes = sum(sizes.values())
    if as_json:
        files = {name: {"size_bytes": size} for name, size in sizes.items()}
        print(json_text({"output": str(output), "size_bytes": size_bytes, "files": files, "archive": str(file)}))
        return
    say(f"{output}: {counted(len(written), 'file')} of {file}, {size_text(size_bytes)}")


@app.command()
def close(
    folder: Annotated[Path, argument("FOLDER.work", "What an interrupted run left.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Makes an archive of what a run had measured when its engine was killed; the run can still be resumed."""
    from lepaute.measure.calibration.entries import CALIBRATION
    from lepaute.measure.clocks.campaign import CONTENT as CLOCKS
    from lepaute.measure.comparison.entries import COMPARISON
    from lepaute.measure.experiment.closing import close_interrupted

    target = close_interrupted(folder, [CALIBRATION, COMPARISON, CLOCKS], force=force)
    archive = Archive.open(target)
    if as_json:
        print(json_text(_facts(archive)))
        return
    measured = archive.about.design.text
    rows = f", {measured}" if measured else ""
    say(f"{target}: {archive.about.outcome}{rows}; {counted(len(archive.members()), 'member')}")


@app.command()
def diff(
    first: Annotated[Path, argument("A", "An archive.")],
    second: Annotated[Path, argument("B", "Another one.")],
    as_json: AsJson = False,
    everything: Annotated[bool, option("Every difference in full.", "--all")] = False,
    exit_code: Annotated[bool, option("Exit status 1 where the setups differ.", "--exit-code")] = False,
) -> int:
    """What differs between the setups of two experiments; results are not compared."""
    from lepaute.measure.archive.comparison import compare, comparison_json, comparison_lines, comparison_sentence
    from lepaute.measure.archive.setups import setup_of

    archives = [Archive.open(file) for file in (first, second)]
    setups = [setup_of(archive) for archive in archives]
    comparison = compare(*setups)
    unread = [f"{side}: {problem}" for side, setup in zip("AB", setups, strict=True) for problem in setup.unread]
    if as_json:
        sides = {
            side: {"path": str(archive.path), "id": archive.id} for side, archive in zip("ab", archives, strict=True)
        }
        print(json_text({**sides, **comparison_json(comparison), "not_compared": unread}))
    else:
        lines = comparison_lines(comparison, unread, everything=everything)
        known = [f"{side}: {archive.path}  {archive.id[:12]}" for side, archive in zip("AB", archives, strict=True)]
        say("\n".join([comparison_sentence(comparison), *known, *lines]))
    return 1 if exit_code and not comparison.same else 0
