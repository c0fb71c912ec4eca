"""`lepaute compare` of files: archives of campaigns, or what other benchmarks printed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lepaute.errors import InputError
from lepaute.kit.outputs import check_outputs

if TYPE_CHECKING:
    from lepaute.compare.comparison import Comparison


def compared_files(
    words: Sequence[str], left: str | None, right: str | None, margin: float, reports: Sequence[Path], *, force: bool
) -> "Comparison | None":
    """The comparison of the files that the words name; None where they name libraries.

    Raises InputError for a mixture, for files that cannot be compared, and where a report cannot be written.
    """
    from lepaute.archive import Archive
    from lepaute.compare.benchmark_comparison import named_output, outputs
    from lepaute.compare.comparison import archives

    printed = [one for word in words if (one := named_output(word)) is not None]
    campaigns = [word for word in words if word.endswith(".zip")]
    if not (printed or campaigns):
        return None
    if len(words) not in (len(printed), len(campaigns)):
        raise InputError(
            f"{' '.join(words)}: archives, outputs of benchmarks and libraries cannot be mixed; give one kind"
        )
    check_outputs({"--report": reports}, inputs=[*campaigns, *(path for _, path in printed)], force=force)
    if campaigns:
        return archives(*(Archive.open(name) for name in campaigns), left=left, right=right, margin=margin)
    if len(printed) != 2 or left or right:
        raise InputError("two outputs of benchmarks are compared, in the order in which they are given: LEFT RIGHT")
    (left_label, left_file), (right_label, right_file) = printed
    return outputs(left_file, right_file, left_label=left_label, right_label=right_label, margin=margin)
