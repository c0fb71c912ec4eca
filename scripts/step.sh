# Sourced by the scripts of the set-up.

# step TITLE COMMAND...: says what is being done, that it is still going on, and how many seconds it took.
step() {
  local title=$1 began=$SECONDS pid status=0
  shift
  echo "$title"
  "$@" &
  pid=$!
  while sleep 1 && kill -0 "$pid" 2>/dev/null; do
    (((SECONDS - began) % 20)) || echo "  ... $((SECONDS - began)) s"
  done
  wait "$pid" || status=$?
  echo "  $((SECONDS - began)) s"
  return "$status"
}
