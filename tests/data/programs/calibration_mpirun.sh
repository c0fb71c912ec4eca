#!/bin/sh
while :; do
  case $1 in -np) ranks=$2 ;; */probe-*) break ;; esac
  shift
done
[ "$2" != --help ] || exit 0
for rank in $(seq 0 $((ranks - 1))); do
  RANK=$rank SUFFIX=.r$rank "$@" || exit 3
done
