#!/usr/bin/env bash
# The documentation is Markdown, read as it stands; this finds links to files that are not there.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0
while IFS=: read -r page link; do
  target=${link%%#*}
  [[ -z $target || $target == *://* ]] && continue
  if [[ ! -e $(dirname "$page")/$target ]]; then
    echo "$page: link to $target, which is not there"
    status=1
  fi
done < <(grep -o -H -E '\]\([^)]+\)' ./*.md docs/*.md | sed -E 's/\]\((.*)\)$/\1/')
((status)) || echo "docs: all links lead somewhere"
exit "$status"
