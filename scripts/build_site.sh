#!/usr/bin/env bash
# Builds the site of the documentation into build/site: only what has changed since the last time. A warning of Sphinx,
# such as a link that leads nowhere, is an error; all are shown. Silent but for the last line.
#   scripts/build_site.sh [FOLDER]      another folder for the pages
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
[[ -x $python ]] || python=python3
site=${1:-build/site}
"$python" -m sphinx -q -W --keep-going -j auto -b html -d build/site-doctrees docs "$site"
"$python" scripts/check_links.py "$site"
