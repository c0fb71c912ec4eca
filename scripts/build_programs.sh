#!/usr/bin/env bash
# The real HPL (from Debian's source package), the probes and simblas, in the cache: $LEPAUTE_HOME or ~/.cache/lepaute.
# A failure is reported but not fatal: a command that needs a program reports what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/python - <<'PYTHON'
import sys
import time

from lepaute.errors import LepauteError
from lepaute.measure.hpl_source import SHA256, unpack_source
from lepaute.measure.probes import build_probes
from lepaute.simulate.apps.hpl.emulation import build_hpl_smpi
from lepaute.simulate.smpi.building import build_library

began_s = time.monotonic()


def progress(what: str) -> None:
    print(f"{what} ({time.monotonic() - began_s:.0f} s so far)", flush=True)


try:
    build_probes(progress=lambda what: progress(f"HPL and probes: {what}"))
except LepauteError as error:
    print("lepaute: the programs for measurements could not be built:", error, file=sys.stderr)
try:
    progress("Emulation")
    build_library()
    build_hpl_smpi(unpack_source, SHA256)
except LepauteError as error:
    print("lepaute: what an emulation needs could not be built:", error, file=sys.stderr)
PYTHON
