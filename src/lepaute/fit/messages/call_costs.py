"""What calls that move no message cost, and when MPI_Iprobe sees one."""

import numpy as np

from lepaute.fit.messages.series import Series

#: Sizes drawn as 10^U from here on are hardly ever drawn twice.
RARELY_TWICE_BYTES = 4096


def looks_first(looks: Series | None) -> bool:
    """Does MPI_Iprobe mostly need more than one call to find a message that has come long before?

    looks : every call until the message was found; a size measured once has as many entries as calls. Small sizes are
            drawn more than once and do not count.
    """
    if looks is None:
        return False
    _, calls = np.unique(looks.within(RARELY_TWICE_BYTES, np.inf).size_bytes, return_counts=True)
    if len(calls) == 0:
        return False
    return bool(np.median(calls) > 1.0)


def call_cost(calls: Series | None) -> float:
    """Mean of calls that move nothing, those beyond ten times the median capped; 0 where not measured."""
    if calls is None or len(calls) == 0:
        return 0.0
    return float(np.mean(np.minimum(calls.duration_s, 10.0 * float(np.median(calls.duration_s)))))
