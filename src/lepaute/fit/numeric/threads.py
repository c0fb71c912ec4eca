"""Sums in one order: results of a fit do not depend on how many threads BLAS has."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Gives BLAS one thread inside the block, also as a decorator; afterwards it has as many as before.

    Each number of threads splits long sums elsewhere, so that the last digits differ, and with them the digest of a
    platform. Fits gain nothing by more: their matrices have some ten columns.
    """
    import scipy.linalg  # noqa: F401 - it brings a BLAS of its own, and only one that is loaded can be told
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
