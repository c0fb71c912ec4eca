#!/usr/bin/env bash
# Installs missing Debian packages; silent if there are none.
#   scripts/install_debian.sh build|compare|test|lint
set -euo pipefail

browser=(chromium)
# Ubuntu's chromium is a snap and no such package: tests of pages in a browser are skipped there.
if grep -qs '^ID=ubuntu$' /etc/os-release; then browser=(); fi

case ${1:-} in
  build) wanted=(build-essential cmake ninja-build python3 python3-venv python3-dev pkg-config
                 openmpi-bin libopenmpi-dev libopenblas-dev libgtest-dev ca-certificates
                 libsimgrid-dev gfortran) ;;
  compare) wanted=(mpich libmpich-dev) ;;
  # Real sshd's and a real Slurm for the tests of experiments, PostgreSQL for those of the store, the tools that describe and warm up a machine, and the
  # `clush` that they are compared with. Tests start daemons of their own: the packages' must not run. A browser for the
  # pages of reports, with a font. MPICH beside Open MPI, which stays the default of Debian's alternatives. The shells that
  # have completion, and the `module` command of a login shell.
  test) wanted=(openssh-server openssh-client slurmctld slurmd slurm-client munge clustershell git
                "${browser[@]}" fonts-liberation mpich libmpich-dev stress-ng hwloc-nox pciutils dmidecode kmod util-linux
                procps libfaketime postgresql zsh fish environment-modules) ;;
  lint) wanted=(clang-format-16 clang-tidy-16) ;;
  *) echo "usage: scripts/install_debian.sh build|compare|test|lint" >&2; exit 2 ;;
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

source "$(dirname "$0")/step.sh"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet --yes -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1
}

# Keeps packages from starting services at installation and at every boot, such as an ssh server.
services=()
for package in "${missing[@]}"; do
  case $package in
    openssh-server) services+=(ssh.service ssh.socket) ;;
    slurmctld | slurmd | munge | postgresql) services+=("$package.service") ;;
  esac
done
policy=/usr/sbin/policy-rc.d
if ((${#services[@]})) && [[ -d /run/systemd/system && ! -e $policy ]]; then
  trap 'rm -f "$log"; "${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

# A failed update (one of several mirrors is down) does not matter as long as the installation succeeds.
install() {
  apt update || true
  apt install --no-install-recommends "${missing[@]}"
}
if ! step "Installing Debian packages: ${missing[*]}" install; then
  tail -n 25 "$log" >&2
  echo "install_debian.sh: apt-get could not install ${missing[*]}" >&2
  exit 2
fi
if ((${#services[@]})) && [[ -d /run/systemd/system ]]; then
  "${as_root[@]}" systemctl --quiet disable "${services[@]}" >>"$log" 2>&1 || true
fi
