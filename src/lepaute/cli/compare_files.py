"""`lepaute compare` of files: archives of campaigns, or what other benchmarks printed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.cli.compare_wanted import Wanted
    from lepaute.compare.comparison import Comparison


def compared_files(words: Sequence[str], wanted: "Wanted") -> "list[Comparison]":
    """The comparisons of the files that the words name; none where they name libraries.

    Raises InputError for a mixture, for files that cannot be compared, and where a report cannot be written.
    """
    from lepaute.archive import Archive
    from lepaute.compare.benchmark_comparison import named_output, outputs
    from lepaute.compare.comparison import archives

    printed = [one for word in words if (one := named_output(word)) is not None]
    campaigns = [word for word in words if word.endswith(".zip")]
    if not (printed or campaigns):
        return []
    if len(words) not in (len(printed), len(campaigns)):
        raise InputError(
            f"{' '.join(words)}: archives, outputs of benchmarks and libraries cannot be mixed; give one kind"
        )
    check_outputs(
        {"--report": list(wanted.reports)}, inputs=[*campaigns, *(path for _, path in printed)], force=wanted.force
    )
    if len(campaigns) == 1:
        return wanted.of_campaign(Archive.open(campaigns[0]))
    if campaigns:
        return [archives(*(Archive.open(name) for name in campaigns), **wanted.of_campaigns())]
    if len(printed) != 2 or wanted.left or wanted.right:
        raise InputError("two outputs of benchmarks are compared, in the order in which they are given: LEFT RIGHT")
    (left_label, left_file), (right_label, right_file) = printed
    found = outputs(
        left_file,
        right_file,
        left_label=left_label,
        right_label=right_label,
        margin=wanted.margin,
        correction=wanted.correction,
    )
    return [found]
