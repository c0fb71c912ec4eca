#!/usr/bin/env bash
# The core's tests, and the extension under hostile values, with AddressSanitizer and UndefinedBehaviorSanitizer, in
# build/sanitized: what reads beyond a vector, overflows an integer or leaks a coroutine fails here. Twelve minutes on
# two cores, most of it to compile; `make test-long` runs it, CI does not.
#   scripts/sanitize.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/step.sh
python=${PYTHON:-.venv/bin/python}
folder=${1:-build/sanitized}

cmake -S . -B "$folder" -G Ninja -DLEPAUTE_TESTS=ON -DLEPAUTE_PYTHON=ON -DLEPAUTE_SANITIZE=ON \
  -DPython_EXECUTABLE="$(realpath -s "$(command -v "$python")")" >/dev/null
step "Compiling the core with sanitizers, where something changed" cmake --build "$folder" -- --quiet

# A frame of a simulated rank takes more stack with the sanitizers than without them.
ulimit -s 4000000 2>/dev/null || ulimit -s "$(ulimit -H -s)"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
step "Tests of the core" "$folder/core_tests" --gtest_brief=1

# The interpreter itself is not compiled so: the library comes first, and what Python keeps to its end is no leak.
# Sanitized code is of this package alone, in a folder of its own that shadows the module of src/.
package=$folder/package
rm -rf "$package"
mkdir -p "$package"
cp -r src/lepaute "$package/lepaute"
rm -f "$package"/lepaute/_core.*.so
cp "$folder"/_core.*.so "$package/lepaute/"
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$folder/CMakeCache.txt")
preload="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libstdc++.so)"
step "The extension under hostile values" env LD_PRELOAD="$preload" ASAN_OPTIONS=detect_leaks=0 PYTHONPATH="$package" \
  "$python" -m pytest -q -p no:cacheprovider --long all tests/hostile/test_core_inputs.py tests/unit/test_core_words.py \
  tests/unit/test_platform_topology.py tests/unit/test_algebra.py tests/golden/test_pinned_options.py
