"""The limits of the protocols, from an archive's tests of send-completion semantics."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.errors import FitError
from lepaute.fit.messages.protocol import ProtocolLimits
from lepaute.fit.observations.tables import SEMANTICS
from lepaute.stats.send_completion import OUTCOMES, Row, rows_of, semantic_limits

if TYPE_CHECKING:
    import pandas

COLUMNS = ("test", "size_bytes", "backlog", "outcome", "patience_ms", "rank")


def limits_by_tests(frames: "Sequence[pandas.DataFrame]") -> ProtocolLimits | None:
    """The limits that the tests found; None where there are none.

    frames : semantics observations of one class of links; those of rank 0 with nothing sent before count
    An asynchronous send is eager, a synchronous one rendezvous. Where all tested sizes are alike, so are larger ones.
    Raises FitError when a column is missing, or holds what no test answers.
    """
    rows: list[Row] = []
    for frame in frames:
        for column in COLUMNS:
            if column not in frame.columns:
                raise FitError(f"{SEMANTICS} lacks the column {column}; the archive is not a calibration")
        try:
            rows += rows_of(frame)
        except ValueError as problem:
            raise FitError(f"{SEMANTICS} holds what is no answer ({problem}); the file is damaged") from None
    if unknown := sorted({outcome for _, _, outcome, _ in rows} - OUTCOMES):  # would count as answers against a size
        raise FitError(f"{SEMANTICS}: unknown outcome {unknown[0][:60]}; the file is damaged or of a newer Lepaute")
    if not {"deadlock", "corruption"} <= {row[1] for row in rows}:
        return None
    limits = semantic_limits(rows)
    return ProtocolLimits(limits.asynchronous_up_to_bytes, limits.detached_up_to_bytes, limits.tested_up_to_bytes)
