#!/usr/bin/env bash
# Tests of the package with the lowest or the newest versions of its dependencies that pyproject.toml allows, in an
# environment of its own under build/.
#   scripts/test_versions.sh lowest|highest [PYTHON] [ARGUMENTS OF PYTEST]      PYTHON: python3 unless given
# Without arguments of pytest, the unit tests that are quick. Run it after `make setup`, which brings uv.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/step.sh

case ${1:-} in
  lowest) resolution=lowest-direct ;;
  highest) resolution=highest ;;
  *) echo "usage: scripts/test_versions.sh lowest|highest [PYTHON] [ARGUMENTS OF PYTEST]" >&2; exit 2 ;;
esac
which=$1
python=${2:-python3}
shift $(($# > 2 ? 2 : $#))
(($#)) || set -- tests/unit -m 'not slow and not machine and not nodes and not long'
environment=build/versions-$which-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# What tests need is the newest in both: it is not what users install. Resolved apart, so that no test tool lifts a bound.
export UV_SYSTEM_CERTS=true
install() {
  local uv=$PWD/.venv/bin/uv
  "$python" -m venv --clear "$environment"
  "$uv" pip compile --quiet --resolution "$resolution" --python "$environment/bin/python" --no-header --no-emit-package lepaute \
    pyproject.toml --extra all -o "$environment/dependencies.txt" >/dev/null
  printf '%s\n' hypothesis pytest pytest-xdist 'nanobind>=2.4' 'scikit-build-core>=0.10' statsmodels playwright rocrate \
    sphinx nbclient ipykernel vermin >"$environment/tools.txt"
  "$uv" pip install --quiet --python "$environment/bin/python" -r "$environment/dependencies.txt" \
    -r "$environment/tools.txt" -c "$environment/dependencies.txt"
  "$uv" pip install --quiet --python "$environment/bin/python" --no-deps --no-build-isolation .
}
step "Installing the $which versions for $("$python" --version)" install
"$environment/bin/python" -m pytest -q -p no:cacheprovider -n 2 "$@"
