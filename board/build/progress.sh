#!/usr/bin/env bash
# board/build/progress.sh STEP COMMAND…   run a long command, its output in build/STEP.log
#
# Prints a line every ten seconds: the time so far, and the last line of the log without escape sequences. If the command
# fails, the script prints the log and returns the status of the command.
set -uo pipefail
cd "$(dirname "$0")/../.."
step=$1
shift
mkdir -p build
log=build/$step.log
"$@" > "$log" 2>&1 &
command=$!
trap 'kill "$command" 2> /dev/null; exit 130' INT TERM
next=10
SECONDS=0
while kill -0 "$command" 2> /dev/null; do
  sleep 0.5
  if [ "$SECONDS" -ge "$next" ]; then
    printf '%s: %d s  %s\n' "$step" "$SECONDS" "$(tail -n 1 "$log" | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | cut -c1-80)"
    next=$((next + 10))
  fi
done
wait "$command" || { status=$?; sed 's/\x1b\[[0-9;]*[A-Za-z]//g' "$log" >&2; exit "$status"; }
printf '%s: done after %d s\n' "$step" "$SECONDS"
