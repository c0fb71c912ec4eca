#!/usr/bin/env bash
# The core and its tests, without Python, in build/core.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/step.sh

[[ -f build/core/build.ninja ]] || cmake -S . -B build/core -G Ninja -DLEPAUTE_TESTS=ON >/dev/null
step "Compiling the tests of the core, where something changed" cmake --build build/core -- --quiet
