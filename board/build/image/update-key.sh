#!/usr/bin/env bash
# update-key.sh NAME.key: creates a key that signs updates of cards (P-256), and its certificate NAME.crt, which cards trust. Keep the
# key off the boxes, and do not lose it: a card accepts no update that another key signed.
set -euo pipefail

key=${1:-}
[[ $key == *.key ]] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
[ ! -e "$key" ] || { echo "update-key: $key is there already" >&2; exit 1; }
umask 077
mkdir -p "$(dirname "$key")"
# Boards compare these dates with the time of the signature, not with their clock.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 10950 -subj "/CN=Causeway updates" \
    -addext "keyUsage=critical,digitalSignature" -addext "extendedKeyUsage=critical,codeSigning" -addext "basicConstraints=critical,CA:FALSE" \
    -keyout "$key" -out "${key%.key}.crt" 2> /dev/null
chmod 644 "${key%.key}.crt"
