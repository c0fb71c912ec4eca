#!/usr/bin/env bash
# The steps of packaging/Containerfile, one after the other, in an empty Debian instead of a container, then the commands
# given, as `podman run` would run each. Needs root and debootstrap; takes 2.5 GB of /var/tmp and the time of `make setup`.
#   scripts/try_container.sh [FOLDER] [ARGUMENTS OF A RUN]...      FOLDER: kept, and its system used again; else a temporary one
#   scripts/try_container.sh /var/tmp/box '' 'predict hpl -p dahu --n 20k --nb 128 --grid 8x8'      '': the image's own command
# Name servers and certificates that were added to this machine are used inside too.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "try_container.sh: $*" >&2; exit 1; }

if (($#)); then root=$1; shift; else root=$(mktemp -d -p /var/tmp); trap 'rm -rf "$root"' EXIT; fi
(($#)) || set -- ''
file=packaging/Containerfile folder=/ entry=() command=() environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)

# Mounts of a namespace of its own: none is left where this ends early.
inside() {
  unshare --mount --pid --fork --kill-child bash -c '
    root=$1; shift
    mount -t proc proc "$root/proc"; mount --rbind /sys "$root/sys"; mount --rbind /dev "$root/dev"
    exec chroot "$root" env -i "$@"' - "$root" "${environment[@]}" "$@"
}
words() { python3 -c 'import json, sys; print(*json.loads(sys.argv[1]), sep="\n")' "$1"; }

while read -r instruction rest; do
  echo "STEP $instruction $rest"
  case $instruction in
    FROM)
      [[ $rest =~ ^docker.io/library/debian:([a-z]+)-slim$ ]] || fail "no image of Debian: $rest"
      [[ -x $root/bin/sh ]] && continue
      debootstrap --variant=minbase "${BASH_REMATCH[1]}" "$root" >"$root.log" 2>&1 || { tail -n 5 "$root.log" >&2; fail "debootstrap failed"; }
      rm -f "$root.log"
      # As the slim images: no manuals, no services, no lists of packages.
      printf 'path-exclude /usr/share/%s/*\n' man doc info lintian groff linda >"$root/etc/dpkg/dpkg.cfg.d/docker"
      echo 'path-include /usr/share/doc/*/copyright' >>"$root/etc/dpkg/dpkg.cfg.d/docker"
      printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
      chmod 755 "$root/usr/sbin/policy-rc.d"
      rm -rf "$root"/usr/share/{man,doc,info}/* "$root"/var/lib/apt/lists/*
      cp /etc/resolv.conf "$root/etc/resolv.conf"
      mkdir -p "$root/usr/local/share/ca-certificates"
      find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$root/usr/local/share/ca-certificates/" \; ;;
    ENV) for each in $rest; do environment+=("${each/\$PATH/${environment[1]#PATH=}}"); done ;;
    COPY)
      [[ $rest == '. '* ]] || fail "not understood: COPY $rest"
      mkdir -p "$root/${rest#. }"
      sed -n 's/^[^#]/&/p' .dockerignore | sed 's#^\*\*/##; t; s#^#./#' | tar --exclude-from=- -cf - . | tar --no-same-owner -xf - -C "$root/${rest#. }" ;;
    WORKDIR) mkdir -p "$root$rest"; folder=$rest ;;
    RUN) inside sh -c "cd $folder && $rest" || fail "failed: RUN $rest" ;;
    ENTRYPOINT) mapfile -t entry < <(words "$rest") ;;
    CMD) mapfile -t command < <(words "$rest") ;;
    *) fail "not understood: $instruction" ;;
  esac
done < <(sed -e '/^#/d' -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' "$file")
echo "$(du -sm "$root" | cut -f 1) MB"

for arguments; do
  if [[ $arguments ]]; then read -ra given <<<"$arguments"; else given=("${command[@]}"); fi
  echo "\$ podman run lepaute $arguments"
  inside sh -c "cd $folder && exec \"\$@\"" - "${entry[@]}" "${given[@]}" || fail "status $?: $arguments"
done
