#!/usr/bin/env bash
# Runs every script of a folder (benchmarks, validation) in order of name; a script may refuse with a reason.
#   scripts/run_folder.sh FOLDER [OPTION]...      options for every script
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1
shift
shopt -s nullglob
scripts=("$folder"/*.py)
if ! ((${#scripts[@]})); then
  echo "$folder: nothing there yet"
  exit 0
fi
status=0
for script in "${scripts[@]}"; do
  echo "== $script"
  .venv/bin/python "$script" "$@" || status=1
done
exit "$status"
