#!/bin/bash
# run-all.sh [-j N] [-a amd64|arm64] [-t SECONDS] [-o DIRECTORY] [SCENARIO...]
#
# Run scenarios of the radio lab (default: all of Tests/Lab/scenarios), N machines at a time (default 2, one processor
# each). A scenario with arguments is one word here: "lab_bluetooth legacy".
#
# Without scenarios as arguments, lines in each file select how it runs. `# variants: A B` lists its arguments, one machine
# for each. `# seconds: N` declares a duration above one minute. `# alone` marks a scenario that measures a rate, which runs
# after the others.
#
# Prints a line per scenario and, last, `N passed, M failed`; fails if one failed. Logs: build/lab/all-ARCH/SCENARIO.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)

usage() { sed -n '2s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 126; }

jobs=2 arch=amd64 seconds=420 output=
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

scenarios=("$@") alone=()
if [ ${#scenarios[@]} = 0 ]; then
    for file in "$here"/scenarios/*.py "$here"/scenarios/*.sh; do
        [ -f "$file" ] || continue
        name=$(basename "${file%.*}")
        if grep -q '^# alone$' "$file"; then alone+=("$name"); continue; fi
        read -ra variants <<< "$(sed -n 's/^# variants: //p' "$file")"
        took=$(sed -n 's/^# seconds: //p' "$file")
        if [ ${#variants[@]} = 0 ]; then scenarios+=("${took:-60} $name"); fi
        for variant in "${variants[@]}"; do scenarios+=("${took:-60} $name $variant"); done
    done
    # The longest scenarios start first, so no processor idles at the end.
    mapfile -t scenarios < <(printf '%s\n' "${scenarios[@]}" | sort -s -k1,1nr | cut -d' ' -f2-)
fi

# Build the image once, so the machines do not wait for each other's build.
"$project/board/virtual/image.sh" "$arch" > /dev/null
rm -rf "$output"
mkdir -p "$output"

one() { # SCENARIO WITH ARGUMENTS: run it, print its line and, if it failed, the end of its output
    local words directory log started status result
    read -ra words <<< "$1"
    directory=$output/$(basename "${words[*]}" | tr ' /' '__')
    log=$directory.txt
    started=$EPOCHREALTIME
    status=0
    "$project/board/virtual/run.sh" -a "$arch" -t "$seconds" -c 1 -o "$directory" "${words[@]}" > "$log" 2>&1 || status=$?
    result=PASS
    [ "$status" = 0 ] || result=FAIL
    {
        printf '%-4s  %6.1f s  %s' "$result" "$(seconds_between "$started" "$EPOCHREALTIME")" "$1"
        [ "$status" = 0 ] || printf ' (status %s)' "$status"
        printf '\n'
        [ "$status" = 0 ] || tail -n 25 "$log" | sed 's/^/      | /'
    } > "$directory.result"
    # One write, because machines that end together would otherwise mix their lines.
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
for scenario in "${alone[@]}"; do one "$scenario"; done

passed=$(cat "$output"/*.status 2>/dev/null | grep -c PASS || true)
failed=$((${#scenarios[@]} + ${#alone[@]} - passed))
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
