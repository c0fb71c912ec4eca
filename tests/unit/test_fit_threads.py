"""What is fitted does not depend on how many threads BLAS and OpenMP have."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import threadpoolctl
from support_fit import kernel_rows, write_calibration
from support_limits import ran

from lepaute.errors import FitError
from lepaute.measure.fit.fitted_models import models
from lepaute.measure.fit.numeric import one_blas_thread

#: Long sums, which two threads split in the middle.
SUMS = """
import numpy as np
from lepaute.measure.fit.numeric import one_blas_thread
a = np.random.default_rng(1).normal(size=(200_000, 10))
x, y = a[:24_000, 0].copy(), a[:24_000, 1].copy()
with one_blas_thread():
    print((x @ y).hex(), (a.T @ a[:, 0]).tobytes().hex(), np.linalg.qr(a)[1].tobytes().hex())
"""
DIGEST = """
import sys
from lepaute.measure.archive import Archive
from lepaute.measure.fit import platform_and_models
print(platform_and_models(Archive.open(sys.argv[1]), "x")[0].sha256)
"""


def with_threads(threads: int, code: str, *words: str) -> str:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    done = ran([sys.executable, "-c", code, *words], env=environment, check=True)
    return done.stdout


def test_long_sums_are_the_same_to_the_last_digit_with_one_thread_and_with_two() -> None:
    assert with_threads(1, SUMS) == with_threads(2, SUMS)


@pytest.mark.slow
@pytest.mark.long
def test_the_digest_of_a_platform_is_the_same_with_one_thread_and_with_two(tmp_path: Path) -> None:
    archive = str(write_calibration(tmp_path / "c.zip", kernel_rows(calls=1500)))
    assert with_threads(1, DIGEST, archive) == with_threads(2, DIGEST, archive)


def threads_of(user_api: str) -> set[int]:
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == user_api}


def test_fits_have_one_thread_and_whoever_calls_them_has_as_many_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    def stop(_archives: Any) -> None:
        seen.append(threads_of("blas"))
        raise FitError("seen")

    monkeypatch.setattr(sys.modules["lepaute.measure.fit.fitted_models"], "calibrations", stop)
    with one_blas_thread():  # loads what is to be told
        pass
    with threadpoolctl.threadpool_limits(limits=2, user_api="blas"):
        with pytest.raises(FitError, match="seen"):
            models([])
        assert seen == [{1}]
        assert threads_of("blas") == {2}
