#!/bin/sh
[ "$1" = --help ] && exit 0
while [ $# -gt 0 ]; do
  case $1 in --design) design=$2 ;; --out) out=$2 ;; esac
  shift
done
[ "${RANK:-0}" != 0 ] || echo "$0" >> FOLDER/runs
printf '#@clock_cost_s=2e-8\n#@blas_core=none\n' > "$out$SUFFIX"
read -r fatal how < FOLDER/fatal
columns=design_row,test,size_bytes,backlog,patience_ms,outcome,returned,start_s,duration_s,rank,cpu
sed '/^[#d]/d' "$design" | awk -F, -v rank="${RANK:-0}" -v head="$columns" -v hang="$how" 'BEGIN { print head } {
  alone = $3 <= 1000 ? "returned" : "blocked"
  copied = $3 <= 1000 ? "copied" : "changed"
  outcome = $2 == "corruption" ? copied : alone
  if (hang == "hang" && outcome == "blocked") { print $0 ",hung,0,1.5,0.001," rank ",0"; exit 3 }
  print $0 "," outcome ",1,1.5,0.001," rank ",0"
}' >> "$out$SUFFIX"
