#!/bin/sh
[ "$1" = --help ] && exit 0
threads=1
while [ $# -gt 0 ]; do
  case $1 in --design) design=$2 ;; --out) out=$2 ;; --cpus) cpus=$2 ;; --threads) threads=$2 ;; esac
  shift
done
head -n 1 "$design" > /dev/null || exit 2
[ "${RANK:-0}" != 0 ] || echo "$0" >> FOLDER/runs
processes=$(($(echo "$cpus" | tr ',' '\n' | wc -l) / threads))
[ -n "$SUFFIX" ] || for process in $(seq 0 $((processes - 1))); do printf 'HEADROW\n' > "$out.r$process"; done
SUFFIX=${SUFFIX:-.r0}
printf 'HEADROW\n' > "$out$SUFFIX"
if [ "${0##*/}" = probe-hpl-steps ] && [ -f FOLDER/steps ]; then
  grep -qx "$(wc -l < FOLDER/runs)" FOLDER/slow && steps=slow_steps || steps=steps
  cat FOLDER/$steps >> "$out$SUFFIX"
fi
read -r fatal how < FOLDER/fatal
count=$(wc -l < FOLDER/runs)
[ "$count" = "$fatal" ] || { [ "$how" = fail-from ] && [ "$count" -ge "$fatal" ]; } || exit 0
printf 'CUT' >> "$out$SUFFIX"
[ "$how" != interrupt ] || { kill -INT ENGINE; sleep 20; }
[ "$how" != lose ] || { sleep 0.5; kill -KILL $(ps -o ppid= -p $(ps -o sess= -p $$)); }
echo "probe-x: it broke" >&2
exit 3
