#!/usr/bin/env bash
# The core and its tests, without Python, in build/core.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/step.sh

[[ -f build/core/build.ninja ]] || cmake -S . -B build/core -G Ninja -DLEPAUTE_TESTS=ON >/dev/null
# Said only where there is something to compile, which takes a minute the first time.
if [[ $(ninja -C build/core -n 2>&1) == *"no work to do"* ]]; then exit 0; fi
step "Compiling the tests of the core" cmake --build build/core -- --quiet
