#!/usr/bin/env bash
# The real HPL (from Debian's source package) and the probes, in the cache: $LEPAUTE_HOME or ~/.cache/lepaute. Says
# nothing where they are there. A failure is told and not fatal: predictions and most tests do without these programs,
# and a command that needs them tells again what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/python - <<'PYTHON'
import sys

from lepaute.errors import LepauteError
from lepaute.measure.probes import build_probes

try:
    build_probes(progress=lambda what: print("HPL and probes:", what, flush=True))
except LepauteError as error:
    print("lepaute: the programs for measurements could not be built:", error, file=sys.stderr)
PYTHON
