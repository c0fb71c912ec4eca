#!/usr/bin/env bash
# The virtual environment .venv with the package and its compiled core; silent if it is up to date.
#   scripts/install_package.sh [dev]      dev: also what tests, checks and examples need
# Versions and their hashes are locked in scripts/requirements.txt and scripts/requirements-dev.txt; to renew them:
#   scripts/lock.sh [--upgrade]
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/step.sh

case ${1:-} in
  '') lock=scripts/requirements.txt ;;
  dev) lock=scripts/requirements-dev.txt ;;
  *) echo "usage: scripts/install_package.sh [dev]" >&2; exit 2 ;;
esac
package_stamp=.venv/lepaute-package.fingerprint
lock_stamp=.venv/$(basename "$lock").fingerprint
package_fingerprint() {
  {
    printf '%s\0' CMakeLists.txt pyproject.toml README.md scripts/requirements.txt scripts/install_package.sh
    find core src probes simblas -type f ! -name '*.pyc' ! -name '*.so' ! -path 'core/tests/*' -print0
  } | sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}
is_current() { [[ -f $1 && $(<"$1") == "$2" ]]; }

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

# uv downloads and unpacks in parallel; pip, which checks its hash, is used for nothing else.
make_environment() {
  local python
  python=$(find_python) || return
  "$python" -m venv --clear .venv &&
    PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore \
      .venv/bin/python -m pip --quiet install --require-hashes -r scripts/requirements-uv.txt
}
# The certificates of the system, as pip and apt use them. Compiled to bytecode here, once: where Python may write none
# (PYTHONDONTWRITEBYTECODE, a read-only installation) each process would compile pandas again, a second and a half.
uv_install() {
  UV_SYSTEM_CERTS=true .venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python "$@"
}

if [[ ! -x .venv/bin/uv ]]; then
  step "Making the virtual environment .venv" make_environment
fi
lock_fingerprint=$(sha256sum "$lock" | cut -d ' ' -f 1)
if ! is_current "$lock_stamp" "$lock_fingerprint"; then
  step "Installing the Python packages of $lock" uv_install --require-hashes -r "$lock"
  printf '%s\n' "$lock_fingerprint" >"$lock_stamp"
fi
current=$(package_fingerprint)
if [[ ! -x .venv/bin/lepaute ]] || ! is_current "$package_stamp" "$current"; then
  # No build isolation: the build tools are here already, and the build folder keeps what has not changed.
  step "Installing the package (compiles the core)" uv_install --no-cache --no-deps --no-build-isolation .
  printf '%s\n' "$current" >"$package_stamp"
fi
