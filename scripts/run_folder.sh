#!/usr/bin/env bash
# Runs every script of a folder (benchmarks, validation) in order of name; a script may refuse with a reason.
#   scripts/run_folder.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

shopt -s nullglob
scripts=("$1"/*.py)
if ! ((${#scripts[@]})); then
  echo "$1: nothing there yet"
  exit 0
fi
status=0
for script in "${scripts[@]}"; do
  echo "== $script"
  .venv/bin/python "$script" || status=1
done
exit "$status"
