#!/usr/bin/env bash
# Applies the formatters; `make lint` only checks.
set -euo pipefail
cd "$(dirname "$0")/.."

clang_format=$(command -v clang-format-16 || command -v clang-format)
find core probes simblas \( -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' \) -print0 |
  xargs -0 -r "$clang_format" -i
.venv/bin/ruff check --quiet --fix . || true
.venv/bin/ruff format --quiet .
