# Sourced by the scripts of the set-up.

# step TITLE COMMAND...: says what is being done, that it is still going on, and how many seconds it took.
step() {
  local title=$1 began=$SECONDS ticker status=0
  shift
  echo "$title"
  # In the background is the clock, not the command, which Ctrl-C would not reach there. Its sleep holds no pipe open.
  while sleep 20 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do echo "  ... $((SECONDS - began)) s"; done &
  ticker=$!
  "$@" || status=$?
  kill "$ticker"
  wait "$ticker" 2>/dev/null || true
  echo "  $((SECONDS - began)) s"
  return "$status"
}
