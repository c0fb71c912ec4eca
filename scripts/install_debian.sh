#!/usr/bin/env bash
# Installs the Debian packages that are missing, and says nothing where none is.
#   scripts/install_debian.sh build|lint
set -euo pipefail

case ${1:-} in
  build) wanted=(build-essential cmake ninja-build python3 python3-venv python3-dev pkg-config
                 openmpi-bin libopenmpi-dev libopenblas-dev libgtest-dev ca-certificates
                 libsimgrid-dev gfortran) ;;
  lint) wanted=(clang-format-16 clang-tidy-16) ;;
  *) echo "usage: scripts/install_debian.sh build|lint" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "install_debian.sh: no dpkg here, so nothing is installed; Lepaute needs the like of: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_debian.sh: missing: ${missing[*]}; there is no sudo, so run as root:" \
         "apt-get install ${missing[*]}" >&2
    exit 2
  fi
  as_root=(sudo)
fi

echo "Installing Debian packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet --yes -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1
}
# An update that fails (one of several mirrors is down) is no reason to stop while the installation works.
apt update || true
if ! apt install --no-install-recommends "${missing[@]}"; then
  tail -n 25 "$log" >&2
  echo "install_debian.sh: apt-get could not install ${missing[*]}" >&2
  exit 2
fi
