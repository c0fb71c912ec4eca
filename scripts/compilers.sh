#!/usr/bin/env bash
# The core, its tests and the extension by each compiler named, as a release is built but for several files compiled as one
# (a third of the time), in build/compilers: the predictions of tests/golden are those that are pinned, in every bit, and
# the core's tests pass. A warning is an error. Three minutes each on two cores.
#   scripts/compilers.sh g++-13 clang++-19 ...        after make setup
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/step.sh
python=$(realpath -s "$(command -v "${PYTHON:-.venv/bin/python}")")
(($#)) || { echo "usage: scripts/compilers.sh COMPILER..." >&2; exit 2; }

failed=()
tried() {
  local folder=build/compilers/$1
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$1" -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
    -DCMAKE_UNITY_BUILD=ON -DLEPAUTE_TESTS=ON -DLEPAUTE_PYTHON=ON -DPython_EXECUTABLE="$python" >"$folder.log" || return
  step "$1: compiling core and extension" cmake --build "$folder" --target _core -- --quiet || return
  # The package with this extension in the place of the one that is installed or linked.
  rm -rf "$folder/package"
  mkdir "$folder/package"
  cp -r src/lepaute "$folder/package/lepaute"
  rm -f "$folder/package/lepaute/"_core.*.so
  cp "$folder/"_core.*.so "$folder/package/lepaute/"
  step "$1: predictions that are pinned" env PYTHONPATH="$folder/package" \
    "$python" -m pytest -q -p no:cacheprovider --long all tests/golden || return
  step "$1: compiling the tests of the core" cmake --build "$folder" -- --quiet || return
  step "$1: tests of the core" "$folder/core_tests" --gtest_brief=1 || return
}
mkdir -p build/compilers
for compiler; do
  command -v "$compiler" >/dev/null || { echo "compilers.sh: no $compiler here" >&2; exit 2; }
  "$compiler" --version | head -n 1
  tried "$compiler" || failed+=("$compiler")
done
((${#failed[@]} == 0)) || { echo "compilers.sh: failed: ${failed[*]}" >&2; exit 1; }
echo "compilers.sh: all pass: $*"
