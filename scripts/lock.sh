#!/usr/bin/env bash
# Writes the locked versions, with their hashes, of pyproject.toml's dependencies: as they are, or `--upgrade`d.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
  UV_SYSTEM_CERTS=true .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-annotate --no-header --no-emit-package lepaute "$@" >/dev/null
}
# What builds the package is needed to install it; the package itself comes from this checkout.
printf '%s\n' 'nanobind>=2.4' 'scikit-build-core>=0.10' |
  compile "$@" pyproject.toml - --extra dev --extra docs --extra mcmc -o scripts/requirements-dev.txt
printf '%s\n' 'nanobind>=2.4' 'scikit-build-core>=0.10' |
  compile pyproject.toml - --extra all -c scripts/requirements-dev.txt -o scripts/requirements.txt
printf '%s\n' uv | compile "$@" - -o scripts/requirements-uv.txt
