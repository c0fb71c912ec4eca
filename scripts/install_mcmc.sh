#!/usr/bin/env bash
# NumPyro in .venv, for the tests of `lepaute platform population --mcmc`: about a minute and 400 MB, once. If it
# is not available these tests are skipped with a reason, as for a user without it; nothing else needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

if .venv/bin/python -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("numpyro") is None)'; then
  exit 0
fi
echo "Installing NumPyro (for tests of the posterior)"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
export PIP_CONSTRAINT=$PWD/scripts/constraints.txt
.venv/bin/python -m pip --quiet install 'numpyro>=0.16' || echo "NumPyro cannot be installed: its tests are skipped"
