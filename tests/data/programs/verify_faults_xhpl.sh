#!/bin/sh
# The last one is held, so that no campaign ends before its fault, and counts for nothing then.
if [ -e FOLDER/hold ] && [ "$(wc -l < FOLDER/started)" = 7 ]; then
    while [ -e FOLDER/hold ]; do sleep 0.01; done
    exit 1
fi
echo run >> FOLDER/started
read -r fatal < FOLDER/fatal
[ "$(wc -l < FOLDER/started)" != "$fatal" ] || kill -KILL $$
sleep 0.02
N=$(sed -n '6s/ .*//p' HPL.dat)
echo "WR12R2C2 $N 128 1 1 0.01 $(awk -v n="$N" 'BEGIN { printf "%.3e", (2/3*n^3 + 3/2*n^2) / 0.01e9 }')"
echo "$N" >> FOLDER/ended
