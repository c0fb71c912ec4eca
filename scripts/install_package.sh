#!/usr/bin/env bash
# Creates the virtual environment .venv with the package, its compiled core and the development tools.
# Silent if it is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

inputs=(CMakeLists.txt pyproject.toml README.md scripts/constraints.txt scripts/install_package.sh)
stamp=.venv/lepaute-package.fingerprint
fingerprint() {
  {
    printf '%s\0' "${inputs[@]}"
    find core src probes simblas -type f ! -name '*.pyc' ! -name '*.so' ! -path 'core/tests/*' -print0
  } | sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}

# An interpreter that can make an environment and against which an extension can be compiled: the python3 that comes
# first is not always one (a minimal container, a version manager).
find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null && "$candidate" - <<'PYTHON' 2>/dev/null; then
import ensurepip, pathlib, sys, sysconfig, venv
header = pathlib.Path(sysconfig.get_path("include"), "Python.h")
sys.exit(0 if sys.version_info >= (3, 11) and header.exists() else 1)
PYTHON
      command -v "$candidate"
      return
    fi
  done
  echo "install_package.sh: no Python >= 3.11 with venv and headers; install python3, python3-venv, python3-dev" >&2
  return 2
}

current=$(fingerprint)
if [[ -x .venv/bin/lepaute && -f $stamp && $(<"$stamp") == "$current" ]]; then
  exit 0
fi

if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
  echo "Making the virtual environment .venv"
  python=$(find_python)
  "$python" -m venv --clear .venv
fi

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
export PIP_CONSTRAINT=$PWD/scripts/constraints.txt
pip() { .venv/bin/python -m pip --quiet "$@"; }

if ! .venv/bin/python -c 'import nanobind, scikit_build_core' 2>/dev/null; then
  pip install nanobind scikit-build-core
fi
echo "Installing the package (compiles the core)"
# No build isolation: the build tools are here already, and the build folder keeps what has not changed.
pip install --no-build-isolation '.[dev]'
printf '%s\n' "$current" >"$stamp"
