#!/bin/sh
number=$(($(ls "$OAR_FARM"/*.words 2>/dev/null | wc -l) + 1))
printf '%s\n' "$@" > "$OAR_FARM/$number.words"
for last; do :; done
setsid sh -c "$last" > "$OAR_FARM/$number.out" 2>&1 < /dev/null &
echo $! > "$OAR_FARM/$number.pid"
echo "[ADMISSION RULE] Modify resource description with type constraints"
echo "OAR_JOB_ID=$number"
