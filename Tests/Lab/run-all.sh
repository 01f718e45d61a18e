#!/bin/bash
# run-all.sh [-j N] [-a amd64|arm64] [-t SECONDS] [-o DIRECTORY] [SCENARIO...]
#
# Runs scenarios of the radio lab, by default all of Tests/Lab/scenarios. N machines run at a time, each with one
# processor. By default N is the number of processors plus one, because a scenario waits for half of its time. A scenario
# and its arguments are one word here: "lab_bluetooth legacy".
#
# Without SCENARIO, lines in the file of each scenario select how the scenario runs:
# - `# variants: A B` lists its arguments. The scenario runs once with each of these arguments, on separate machines.
# - `# seconds: N` declares a duration above one minute.
# - `# runs last` marks a scenario that measures a rate. Such a scenario runs when all others have ended.
#
# Prints a line per scenario and, at the end, `N passed, M failed`. The exit status is 1 if a scenario failed.
# Logs: build/lab/all-ARCH/SCENARIO.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)

usage() { sed -n '2s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 126; }

jobs=$(($(nproc) + 1)) arch=amd64 seconds=420 output=
while getopts j:a:t:o: option; do
    case $option in
        j) jobs=$OPTARG ;;
        a) arch=$OPTARG ;;
        t) seconds=$OPTARG ;;
        o) output=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
output=${output:-$project/build/lab/all-$arch}

scenarios=("$@") last=()
if [ ${#scenarios[@]} = 0 ]; then
    for file in "$here"/scenarios/*.py "$here"/scenarios/*.sh; do
        [ -f "$file" ] || continue
        name=$(basename "${file%.*}")
        if grep -q '^# runs last$' "$file"; then last+=("$name"); continue; fi
        read -ra variants <<< "$(sed -n 's/^# variants: //p' "$file")"
        took=$(sed -n 's/^# seconds: //p' "$file")
        if [ ${#variants[@]} = 0 ]; then scenarios+=("${took:-60} $name"); fi
        for variant in "${variants[@]}"; do scenarios+=("${took:-60} $name $variant"); done
    done
    # The longest scenarios start first, so that no processor is idle while the last one runs.
    mapfile -t scenarios < <(printf '%s\n' "${scenarios[@]}" | sort -s -k1,1nr | cut -d' ' -f2-)
fi

# The image is built here once, because otherwise each machine would wait for the build of another one.
"$project/board/lab/image.sh" "$arch" > /dev/null
rm -rf "$output"
mkdir -p "$output"

one() { # SCENARIO WITH ARGUMENTS: run it, print its line and, if it failed, the end of its output
    local words directory log started status result
    read -ra words <<< "$1"
    directory=$output/$(basename "${words[*]}" | tr ' /' '__')
    log=$directory.txt
    started=$EPOCHREALTIME
    status=0
    "$project/board/lab/run.sh" -a "$arch" -t "$seconds" -c 1 -o "$directory" "${words[@]}" > "$log" 2>&1 || status=$?
    result=PASS
    [ "$status" = 0 ] || result=FAIL
    {
        printf '%-4s  %6.1f s  %s' "$result" "$(seconds_between "$started" "$EPOCHREALTIME")" "$1"
        [ "$status" = 0 ] || printf ' (status %s)' "$status"
        printf '\n'
        [ "$status" = 0 ] || tail -n 25 "$log" | sed 's/^/      | /'
    } > "$directory.result"
    # The result is printed by a single write, so that the lines of machines that end at the same time are not mixed.
    cat "$directory.result"
    echo "$result" > "$directory.status"
}

seconds_between() { # START END, both as in EPOCHREALTIME: seconds with one decimal
    local start=${1/[.,]/} end=${2/[.,]/}
    printf '%d.%d' $(((end - start) / 1000000)) $(((end - start) / 100000 % 10))
}

for scenario in "${scenarios[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    one "$scenario" &
done
wait
for scenario in "${last[@]}"; do one "$scenario"; done

passed=$(cat "$output"/*.status 2>/dev/null | grep -c PASS || true)
failed=$((${#scenarios[@]} + ${#last[@]} - passed))
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
