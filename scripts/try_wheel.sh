#!/usr/bin/env bash
# A wheel in an empty Debian without compiler and MPI: what works with the core of the package, what names a missing extra,
# its size; with all extras the commands of README.md that are not marked there as not run. Needs root and debootstrap.
#   scripts/try_wheel.sh WHEEL [SUITE]      SUITE: of Debian, bookworm unless given; its Python must be the wheel's
# Nothing is loaded from inside: the packages that the wheel asks for are downloaded here first.
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=${1:?usage: scripts/try_wheel.sh WHEEL [SUITE]}
suite=${2:-bookworm}
root=$(mktemp -d)
trap 'umount -q "$root/proc" || true; rm -rf "$root" "$root.log"' EXIT
inside() { chroot "$root" env -i HOME=/srv LANG=C.UTF-8 COLUMNS=80 PATH=/v/bin:/usr/bin:/bin sh -c "cd /srv && $1"; }
fail() { echo "try_wheel.sh: $*" >&2; exit 1; }

debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$root" >"$root.log" 2>&1 ||
  { tail -n 5 "$root.log" >&2; fail "debootstrap $suite failed"; }
mount -t proc proc "$root/proc"
! inside 'command -v cc gcc mpicc' || fail 'there is a compiler in the empty system'

mkdir "$root/wheels"
cp "$wheel" "$root/wheels"
version=$(inside "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")
.venv/bin/python -m pip download --quiet --python-version "$version" --only-binary :all: --dest "$root/wheels" "$wheel[all]"
cp tests/data/duration_tables/osu_latency.txt "$root/srv"
inside 'python3 -m venv /v'
before=$(du -sm "$root/v" | cut -f 1)
inside 'pip install --quiet --no-index --find-links /wheels lepaute'
echo "Python $version; installed: $(($(du -sm "$root/v" | cut -f 1) - before)) MB (with bytecode)"
inside 'du -sm /v/lib/python3*/site-packages/* | sort -rn | head -n 6'

works() { echo "\$ lepaute $1"; inside "lepaute $1" </dev/null >"$root/out" 2>&1 || { cat "$root/out"; fail "lepaute $1 failed"; }; tail -n "${2:-2}" "$root/out"; }
works '--version'
works 'predict hpl -p dahu --n 20k --nb 128 --grid 8x8' 4
works 'predict stencil -p dahu --grid 8x8x4 --cells 1024x1024x512 --cell-time 2e-9'
works 'platform new --nodes 16 --cores 2x24 --dgemm 45G --link 100Gb --memory 192G -o first.yaml'
works 'segment osu_latency.txt'

# Each extra of the package: the line that is printed where it is missing, and nothing else.
misses() {
  local status=0
  inside "lepaute $2" >"$root/out" 2>&1 || status=$?
  echo "\$ lepaute $2"; cat "$root/out"
  [[ $status == 2 && $(wc -l <"$root/out") == 1 && $(<"$root/out") == *"pip install 'lepaute[$1]'" ]] ||
    fail "status $status, and not one line that names the extra $1"
}
misses fit 'fit calibration.zip'
misses fit 'calibrate'
misses trace 'trace show trace.parquet'
misses report 'predict hpl -p dahu --n 5k --nb 128 --grid 2x2 --plot runs.png'
misses compare 'compare openmpi mpich'
misses study 'study ready nb-and-grid -p dahu'
misses watch 'watch test --store store'
# Commands that need these need another extra first, so they are asked for from Python.
inside 'pip install --quiet --no-index --find-links /wheels "lepaute[watch]"'
told() {
  echo ">>> $2"
  inside "python -c 'from lepaute.errors import LepauteError
try:
    $2
except LepauteError as problem:
    print(problem)'" >"$root/out" 2>&1 || true
  cat "$root/out"
  [[ $(<"$root/out") == *"pip install 'lepaute[$1]'" ]] || fail "the extra $1 is not named"
}
told postgresql 'import lepaute.watch.store.postgresql as module; module.PostgresqlBackend("postgresql://nowhere/store", create=False)'
told otf2 'import lepaute.simulate.trace.otf2_reader as module; module.convert(module.Path("traces.otf2"))'
told mcmc 'import lepaute.measure.fit.population.posterior as module; module._libraries()'
inside 'pip install --quiet --no-index --find-links /wheels "lepaute[all]"'
awk '/<!-- not run/ { skip = 1 } /^```$/ { skip = 0 } /^\$ lepaute/ && !skip { print substr($0, 11) }' README.md |
  while IFS= read -r line; do works "$line"; done
echo "try_wheel.sh: all as expected"
