#!/usr/bin/env bash
# The core and its tests, without Python, in build/core.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -f build/core/build.ninja ]] || cmake -S . -B build/core -G Ninja -DLEPAUTE_TESTS=ON >/dev/null
cmake --build build/core -- --quiet
