"""`lepaute compare`: MPI libraries, measured side by side into an archive, and which is faster."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lepaute.cli.compare_options import CompareOptions, MeasureOptions
from lepaute.cli.entry import LIBRARY_FAILED
from lepaute.cli.options import argument, arguments_of, is_given, option, refuse_options, reject_other_options
from lepaute.cli.run import PythonOnNodes, SchedulerName
from lepaute.cli.terminal import announce, json_text, note, notes_printed, progress_bar, warn
from lepaute.errors import InputError
from lepaute.kit.files import write_atomic
from lepaute.kit.outputs import check_archive_output, check_outputs
from lepaute.kit.printable import terminal_columns
from lepaute.kit.text import counted, seconds
from lepaute.measure.archive import Archive
from lepaute.measure.comparison.cases import operations_of, unused_arguments
from lepaute.measure.comparison.factors import parse_factors
from lepaute.measure.schedulers import Request

if TYPE_CHECKING:
    from lepaute.measure.compare.comparison import Comparison

#: Parameters that an answer uses, and a measurement.
_ANSWERING = arguments_of(CompareOptions) - {"measure_only"} | {"libraries"}
_MEASURING = arguments_of(MeasureOptions, Request) | {"libraries", "output", "scheduler", "python", "force"}


def command(
    context: typer.Context,
    libraries: Annotated[
        list[str],
        argument(
            "LIBRARY...",
            "A name (openmpi, mpich), a prefix (/opt/mpi), a compiler wrapper, or module:NAME; or LABEL= and one. "
            "Archives (LEFT.zip RIGHT.zip, or one of each session): compares what they hold. Two files, or LABEL=FILE, "
            "of what the OSU or the Intel MPI benchmarks printed: compares these as far as they go.",
        ),
    ],
    measuring: MeasureOptions,
    options: CompareOptions,
    request: Request,
    output: Annotated[Path, option("Archive to write.", "--output", "-o")] = Path("comparison.zip"),
    scheduler: SchedulerName = None,
    python: PythonOnNodes = None,
) -> None:
    """Measures MPI libraries side by side, here or on nodes, writes an archive with every call, and compares them.

    Several mpiruns of each library, in blocks in shuffled order; sizes and operations are shuffled inside. Close other
    programs first; `lepaute doctor` reports what would disturb. Archives given instead of libraries are compared, and
    so are files of what other benchmarks printed.
    """
    where = {"request": request, "scheduler": scheduler, "python": python}
    if options.guidelines:
        _guidelines(context, libraries, measuring, options, output, where)
        return
    if compared := _compared_files(context, libraries, options):
        _show(compared, options)
        return
    measured = _measure(context, libraries, measuring, options, output, where)
    if options.measure_only or (len(libraries) == 1 and not options.baseline):
        _end_where_failed(measured)
    else:
        _show(_compared_campaigns(measured, options), options, _measured_facts(measured))


def _guidelines(
    context: typer.Context,
    libraries: list[str],
    measuring: MeasureOptions,
    options: CompareOptions,
    output: Path,
    where: dict[str, Any],
) -> None:
    from lepaute.cli.compare_text import guidelines_answer
    from lepaute.measure.archive.mpi_campaign import facts
    from lepaute.measure.compare.guidelines import OPERATIONS, sizes_for

    if len(libraries) != 1 or len(measuring.ranks) > 1:
        raise InputError("--guidelines is of one library, or one archive, and of one number of ranks (--np)")
    used = set() if (is_archive := libraries[0].endswith(".zip")) else _MEASURING - {"sessions", "every_s", "factors"}
    used = {*used, "libraries", "guidelines", "details", "as_json", "force", "left"}
    reject_other_options(context, used, "--guidelines compares no two libraries")
    if is_archive:
        campaign = Archive.open(libraries[0])
    else:
        ops = measuring.ops if is_given(context, "ops") else OPERATIONS
        sizes = measuring.sizes if is_given(context, "sizes") else sizes_for(measuring.ranks[0])
        measuring = replace(measuring, ops=ops, sizes=sizes)
        (campaign,) = _measure(context, libraries, measuring, options, output, where)
    about = facts(campaign)
    options.check_labels(about.labels)
    labels = [options.left] if options.left else about.labels
    if options.as_json and len(labels) > 1:
        raise InputError(f"--json has the guidelines of one library; name one by --left, of {', '.join(labels)}")
    for label in labels:
        print(guidelines_answer(campaign, label, about.ranks, details=options.details, as_json=options.as_json))
    _end_where_failed([campaign])


def _compared_files(context: typer.Context, words: Sequence[str], options: CompareOptions) -> "list[Comparison]":
    """The comparisons of the files that the words name; none where they name libraries.

    Raises InputError for a mixture, for files that cannot be compared, and where a report cannot be written.
    """
    from lepaute.measure.archive.mpi_campaign import facts
    from lepaute.measure.compare.benchmark_output import named_output, outputs

    printed = [output for word in words if (output := named_output(word)) is not None]
    campaigns = [word for word in words if word.endswith(".zip")]
    if not (printed or campaigns):
        return []
    if len(words) not in (len(printed), len(campaigns)):
        raise InputError(
            f"{' '.join(words)}: archives, outputs of benchmarks and libraries cannot be mixed; give one kind"
        )
    inputs: list[str | Path] = [*campaigns, *(path for _, path in printed)]
    if campaigns:
        reject_other_options(context, _ANSWERING, "an archive is measured already")
        opened = [Archive.open(campaign) for campaign in campaigns]
        all_ranks = facts(opened[0]).all_ranks
        check_outputs(options.outputs_of(all_ranks), inputs=inputs, force=options.force)
        if options.scaling is not None and len(all_ranks) == 1:
            raise InputError(f"--scaling is of several numbers of ranks, and {campaigns[0]} has one")
        return _compared_campaigns(opened, options)
    used = _ANSWERING - {"left", "right", "primary", "scaling", "baseline"}
    reject_other_options(context, used, "outputs of benchmarks are compared as they are, LEFT RIGHT")
    check_outputs(options.outputs_of(), inputs=inputs, force=options.force)
    if len(printed) != 2:
        raise InputError("two outputs of benchmarks are compared, in the order in which they are given: LEFT RIGHT")
    (left_label, left), (right_label, right) = printed
    rule = {"margin": options.margin, "correction": options.correction}
    return [outputs(left, right, left_label=left_label, right_label=right_label, **rule)]


def _days(options: CompareOptions) -> list[Archive]:
    from lepaute.measure.compare.baseline import check_days

    days = [Archive.open(path) for path in options.baseline or ()]
    if days:
        check_days(days)
    return days


def _compared_campaigns(campaigns: Sequence[Archive], options: CompareOptions) -> "list[Comparison]":
    """With earlier days; of campaigns that all have several libraries each with the reference, --left or the first."""
    from lepaute.measure.archive.mpi_campaign import facts
    from lepaute.measure.compare.baseline import against_baseline
    from lepaute.measure.compare.summaries import shared_labels

    if options.baseline:
        if len(campaigns) != 1:
            raise InputError(f"--baseline is of one build, and {len(campaigns)} are given; give the others to it, too")
        return [against_baseline(campaigns[0], _days(options), labels=(options.left, options.right), **options.rule)]
    labels = shared_labels([facts(campaign) for campaign in campaigns])
    if len(labels) <= 2 or options.right is not None:
        return list(options.compared(*campaigns))
    options.check_labels(labels)
    reference = options.left or labels[0]
    others = [label for label in labels if label != reference]
    options.refuse_outputs(f"is of two libraries; name one of {', '.join(others)} with --right")
    return [each for label in others for each in options.compared(*campaigns, left=reference, right=label)]


def _measure(
    context: typer.Context,
    libraries: list[str],
    measuring: MeasureOptions,
    options: CompareOptions,
    output: Path,
    where: dict[str, Any],
) -> list[Archive]:
    """Measures, and prints what; the archive of every session; where: arguments of `measure_libraries` on nodes.

    Raises InputError where what is to be shown cannot come of these libraries.
    """
    from lepaute.measure.archive.mpi_campaign import facts
    from lepaute.measure.comparison.libraries import named_libraries
    from lepaute.measure.comparison.measuring import asked_place, campaign_for
    from lepaute.measure.comparison.sessions import measure_sessions, session_archives

    asked_place(measuring.hostfile, where["scheduler"], where["request"], measuring.ranks_per_node)
    parse_factors(measuring.factors or ())
    targets = session_archives(output, measuring.sessions)
    outputs = [path for path in targets if not (measuring.resume and len(targets) > 1 and path.exists())]
    written = options.outputs_of(measuring.ranks)
    check_outputs({"--output": outputs, **written}, force=options.force)
    if options.measure_only or (len(libraries) == 1 and not (options.baseline or options.guidelines)):
        why = "--measure-only compares nothing" if options.measure_only else "one library is compared with none"
        reject_other_options(context, _MEASURING | {"primary", "measure_only"}, why)
    if measuring.sessions == 1:
        refuse_options(context, ("every_s",), "there is one session")
    if measuring.calls is not None and measuring.mpiruns is not None:
        refuse_options(context, ("precision",), "--calls and --mpiruns say how much is measured")
    operations, where_from = [operation for operation, _ in operations_of(measuring.ops)], "--ops"
    if measuring.recording is not None:
        refuse_options(context, ("ops", "sizes", "ranks", "primary", "datatype"), "--for tells what is measured")
        fields, caveats = campaign_for(measuring.recording)
        measuring = replace(measuring, ranks=(fields["ranks"],))
        operations, where_from = [operation for operation, _ in fields["operations"]], str(measuring.recording)
        for caveat in caveats:
            note(f"lepaute: {measuring.recording}: {caveat}")
    refuse_options(context, unused_arguments(operations), f"no operation of {where_from} uses it")
    _days(options)  # refused before anything is measured
    if options.scaling is not None and len(measuring.ranks) == 1:
        raise InputError("--scaling is of several numbers of ranks; give them to --np, such as 2,4,8")
    if len(libraries) != 2 and not (options.left and options.right):
        options.refuse_outputs("is of two libraries; name them with --left and --right")
    options.check_labels([library.label for library in named_libraries(libraries)])
    arguments = {**vars(measuring), **where, "primary": options.primary or ()}
    for path in outputs:
        check_archive_output(path, force=options.force)
    with notes_printed(), progress_bar() as tell:
        paths = measure_sessions(libraries, output, **arguments, progress=tell, announce=announce)
    measured = [Archive.open(path) for path in paths]
    warn(line for archive in measured for line in archive.about.warnings)
    if options.measure_only or len(facts(measured[0]).labels) == 1:
        for name, text in _measured_facts(measured):
            note(f"{name}: {text}")
    for path, archive in zip(paths, measured, strict=True):
        note(f"wrote {path}: archive {archive.id[:12]}, {counted(len(archive.members()), 'member')}")
    return measured


def _measured_facts(measured: Sequence[Archive]) -> list[tuple[str, str]]:
    """The libraries, and how often and how long each session ran."""
    from lepaute.measure.archive.mpi_campaign import facts

    abouts = [facts(each) for each in measured]
    libraries = "; ".join(f"{library.label}: {library.family} {library.version}" for library in abouts[0].libraries)
    each = " on each number of ranks" if abouts[0].fewer_ranks else ""
    each += " with each combination of levels" if abouts[0].varied else ""
    runs = "; ".join(
        f"{counted(about.mpiruns, 'mpirun')} of each library{each} in {seconds(about.spent_s)}" for about in abouts
    )
    first = abouts[0].factors
    where = [("where", first["processes"]), ("network", first["network"])] if abouts[0].nodes else []
    return [("of", libraries), ("from", f"{counted(len(abouts[0].cases), 'case')}, {runs}"), *where]


def _show(
    comparisons: "Sequence[Comparison]", options: CompareOptions, measured: Sequence[tuple[str, str]] = ()
) -> None:
    """Prints the verdicts; measured: facts of what was just measured.

    Raises typer.Exit: 5 where a library failed, 1 where one is slower than it may be, 3 where that is not known and is
    to be."""
    from lepaute.cli.compare_text import answered_comparison
    from lepaute.measure.compare.report import all_data, annotations_text, junit_text, markdown_text
    from lepaute.measure.compare.wording import gate

    if len({each.right for each in comparisons}) == 1:
        options.write(comparisons)
    share = options.fail_if_slower
    gates = [gate(each.verdicts, each.right, share, each.cannot_fail) for each in comparisons if share is not None]
    if options.junit is not None:
        write_atomic(options.junit, junit_text(comparisons, gates))
    if options.markdown is not None:
        with options.markdown.open("a", encoding="utf-8") as file:
            file.write(markdown_text(comparisons, gates))
    if options.as_json:
        several = {
            "answer": "; ".join(comparison.answer for comparison in comparisons),
            "reference": comparisons[0].left,
            "comparisons": [comparison.to_dict() for comparison in comparisons],
        }
        print(json_text(several if len(comparisons) > 1 else all_data(comparisons[0])))
    else:
        print(answered_comparison(comparisons, measured, terminal_columns(), details=options.details))
    if options.annotations and (text := annotations_text(comparisons, gates)):
        print(text, file=sys.stderr)  # the runner reads both streams; standard output may be JSON
    for comparison, each in zip(comparisons, gates, strict=False):
        note((f"on {comparison.ranks} ranks, " if comparison.all_ranks else "") + each.sentence)
    if any(each.failures for each in comparisons):
        raise typer.Exit(LIBRARY_FAILED)
    if statuses := {each.status(strict=options.strict) for each in gates} - {0}:
        raise typer.Exit(min(statuses))


def _end_where_failed(measured: Sequence[Archive]) -> None:
    from lepaute.measure.compare.failures import campaign_failures, failures_text

    if failures := [failure for archive in measured for failure in campaign_failures(archive)]:
        note(failures_text(failures))
        raise typer.Exit(LIBRARY_FAILED)
