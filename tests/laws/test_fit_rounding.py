"""An archive fits to the same platform on any processor: equal choices, and numbers within 10^-9."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from support_fit import kernel_rows, sentinel_rows, write_calibration
from support_limits import ran

FIT = """
import json, sys, threadpoolctl
from lepaute.measure.archive import Archive
from lepaute.measure.fit import platform_and_models
platform, _ = platform_and_models(Archive.open(sys.argv[1]), "x")
blas = sorted({pool.get("architecture") for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"})
print(json.dumps({"platform": platform.model_dump(mode="json"), "blas": blas}))
"""
WITHIN = 1e-9
CONSTANT = ("daxpy", "dcopy", "dscal", "idamax", "dlocswp")


def fitted(archive: Path, **environment: str) -> dict[str, Any]:
    done = ran([sys.executable, "-c", FIT, str(archive)], env={**os.environ, **environment}, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def old_processor() -> dict[str, str]:
    """What makes BLAS, NumPy and the C library compute as on a processor of 2004: without AVX and fused operations."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    return {
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": " ".join(simd.get("found", [])),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    }


def comparable(key: str, value: Any) -> Any:
    """Covariances as standard deviations and correlations, and no number that is rounding."""
    if key == "matrix":
        covariance = np.array(value)
        sd = np.sqrt(np.diag(covariance))
        unit = np.where(sd > 0, sd, 1.0)
        return {"sd": sd.tolist(), "one plus correlation": (1 + covariance / np.outer(unit, unit)).tolist()}
    return 1 - value if key == "r_squared" else value


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of everything in a document."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(comparable(key, each), f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}.length", len(value)
        for place, each in enumerate(value):
            yield from leaves(each, f"{path}[{place}]")
    else:
        yield path, value


def rows() -> pandas.DataFrame:
    """Calls of which two models are equal up to rounding: those of CONSTANT take as long, and scatter as much, whatever
    their size; of the others, m is twice n."""
    table = kernel_rows(calls=400, kernels=("dgemm", "dtrsm", "dlaswp01T", *CONSTANT))
    constant = table["kernel"].isin(CONSTANT)
    scatter = table["duration_s"] / (2.5e-11 * table["m"] * table["n"] * 128 + 1e-6)
    table.loc[~constant, "n"] = table.loc[~constant, "m"] // 2
    size = table["m"] * table["n"] * 128 * (1 + (table["m"] > 300))
    table["duration_s"] = scatter * np.where(constant, 2e-6, 2.5e-11 * size + 1e-6)
    return table


@pytest.mark.slow
def test_an_archive_fits_to_the_same_platform_on_another_processor(tmp_path: Path) -> None:
    archive = write_calibration(tmp_path / "c.zip", rows(), sentinels=sentinel_rows(0.02 * np.sin(np.arange(20))))
    here, there = fitted(archive), fitted(archive, **old_processor())
    if here["blas"] == there["blas"]:
        pytest.skip(f"BLAS has one kind of kernels here, {here['blas']}")
    ours, others = (dict(leaves(each["platform"])) for each in (here, there))
    assert len(ours) > 500
    assert ours.keys() == others.keys()
    apart = {
        path: (value, others[path])
        for path, value in ours.items()
        if not (
            abs(value - others[path]) <= WITHIN * abs(value)
            if isinstance(value, float) and others[path] is not None
            else value == others[path]
        )
    }
    assert not apart
