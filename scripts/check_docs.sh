#!/usr/bin/env bash
# The documentation is plain Markdown; this finds links to files that do not exist.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0
while IFS=: read -r page link; do
  target=${link%%#*}
  [[ -z $target || $target == *://* ]] && continue
  if [[ ! -e $(dirname "$page")/$target ]]; then
    echo "$page: link to $target, which does not exist"
    status=1
  fi
done < <(grep -o -H -E '\]\([^)]+\)' ./*.md docs/*.md | sed -E 's/\]\((.*)\)$/\1/')
((status)) || echo "docs: all links are valid"
exit "$status"
