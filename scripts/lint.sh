#!/usr/bin/env bash
# All static checks. Runs them all before it fails, so that one run shows everything to fix.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
failed=()

check() {
  local title=$1
  shift
  echo "== $title"
  "$@" || failed+=("$title")
}

mapfile -t cxx < <(find core -name '*.cpp' -o -name '*.hpp' | sort)
mapfile -t units < <(find core -name '*.cpp' ! -path 'core/bindings/*' ! -name binding.cpp ! -path 'core/tests/*' | sort)
mapfile -t simblas < <(find simblas -name '*.cpp' -o -name '*.hpp' -o -name '*.h' | sort)
mapfile -t c < <(find probes -name '*.c' -o -name '*.h' | sort)
clang_format=$(command -v clang-format-16 || command -v clang-format) || clang_format=clang-format-16
clang_tidy=$(command -v clang-tidy-16 || command -v clang-tidy) || clang_tidy=clang-tidy-16

# Each file takes 10 to 30 s: one that takes ten minutes hangs, and fails.
tidy() {
  timeout --kill-after=10 600 "$clang_tidy" --quiet "$@" 2>/dev/null
  local status=$?
  ((status == 124 || status == 137)) && echo "clang-tidy $*: stopped after ten minutes"
  return "$status"
}
export -f tidy
export clang_tidy

tidy_core() {
  cmake -S . -B build/core -G Ninja -DLEPAUTE_TESTS=ON >/dev/null || return
  printf '%s\0' "${units[@]}" | xargs -0 -I '{}' -P "$(nproc)" bash -c 'tidy -p build/core "$1"' bash '{}'
}

# The probes are compiled where they measure, so their flags are asked of mpicc, and those of HPL's headers of the
# package, which has built HPL at set-up.
tidy_probes() {
  local flags hpl_flags file status=0
  read -ra flags <<<"$(mpicc --showme:compile)"
  read -ra hpl_flags <<<"$("$bin/python" -c '
from lepaute.measure.hpl_source import build_hpl, hpl_include_flags
print(*hpl_include_flags(build_hpl()))' 2>/dev/null)"
  for file in "${c[@]}"; do
    [[ $file == *.c ]] || continue
    if needs_hpl "$file" && ((${#hpl_flags[@]} == 0)); then
      echo "$file: skipped, it includes HPL's headers and HPL is not built (make setup says why)"
      continue
    fi
    tidy "$file" -- -std=c11 -D_GNU_SOURCE -Iprobes "${flags[@]}" "${hpl_flags[@]}" || status=1
  done
  return "$status"
}

# simblas is compiled where SimGrid is; that of HPL (simblas/hpl) includes HPL's headers, which are no C++ to be tidied.
tidy_simblas() {
  if [[ ! -f /usr/include/simgrid/s4u.hpp ]]; then
    echo "skipped: SimGrid's headers are not installed"
    return
  fi
  printf '%s\0' simblas/*.cpp |
    xargs -0 -I '{}' -P "$(nproc)" bash -c 'tidy "$1" -- -std=c++20 -Isimblas -Icore' bash '{}'
}

# The stub is generated (make stubs) from the module that the virtual environment has.
stub_is_current() {
  mkdir -p build/stub &&
    "$bin/python" -m nanobind.stubgen -q -m lepaute._core -o build/stub/_core.pyi &&
    diff -u src/lepaute/_core.pyi build/stub/_core.pyi
}

# HPL's headers, directly or through one of our own headers.
needs_hpl() {
  local header
  grep -q -E '^#include [<"](hpl|hpcc)\.h' "$1" && return
  for header in $(sed -n -E 's/^#include "(.*)"/\1/p' "$1"); do
    [[ -f probes/$header ]] && needs_hpl "probes/$header" && return
  done
  return 1
}

# bash reads one script; what follows are its arguments.
shell_syntax() {
  printf '%s\n' scripts/*.sh .ci/run | xargs -n 1 bash -n
}

((${#cxx[@]})) && check "clang-format core" "$clang_format" --dry-run -Werror "${cxx[@]}"
((${#c[@]})) && check "clang-format probes" "$clang_format" --dry-run -Werror "${c[@]}"
((${#simblas[@]})) && check "clang-format simblas" "$clang_format" --dry-run -Werror "${simblas[@]}"
check "clang-format scripts" "$clang_format" --dry-run -Werror scripts/*.c
((${#units[@]})) && check "clang-tidy core" tidy_core
((${#c[@]})) && check "clang-tidy probes" tidy_probes
((${#simblas[@]})) && check "clang-tidy simblas" tidy_simblas
check "_core.pyi is what make stubs writes" stub_is_current
check "ruff check" "$bin/ruff" check --quiet .
check "ruff format" "$bin/ruff" format --check --quiet .
check "mypy --strict src" "$bin/mypy" --no-error-summary
# Mypy knows no older Python; only what travels to the nodes is judged, not what the package imports around it.
check "mypy, as Python 3.10, what runs on nodes" "$bin/mypy" --no-error-summary --python-version 3.10 \
  --follow-imports=silent src/lepaute/measure/node_agent src/lepaute/kit/sessions.py
check "imports point downwards" env PYTHONPATH=src "$bin/lint-imports" --no-cache
check "shell scripts" shell_syntax
check "limits" "$bin/python" scripts/limits.py

if ((${#failed[@]})); then
  printf 'lint: failed:'
  printf ' [%s]' "${failed[@]}"
  printf '\n'
  exit 1
fi
echo "lint: all checks passed"
