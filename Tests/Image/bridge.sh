#!/bin/sh
# Runs on the virtual board after the board's first start. Three nodes share only the box, and send each other files. bob has
# the board's second Bluetooth controller, carol its second Wi-Fi radio, and dave a cable. carol and dave are in network
# namespaces of their own.
set -eu

peer() { # NAME: write a node's configuration; the sections for this node come from stdin
    mkdir -p "/run/$1/state" "/run/$1/run" "/run/$1/in"
    { printf '[node]\ndisplay-name = %s\nstate-directory = /run/%s/state\nruntime-directory = /run/%s/run\n' "$1" "$1" "$1"; cat; } > "/run/$1/conf"
}
run() { # NAME COMMAND…: start a node's daemon as an argument of COMMAND…
    name=$1
    shift
    setsid "$@" causeway run --config "/run/$name/conf" > "/run/$name/log" 2>&1 < /dev/null &
    while [ ! -S "/run/$name/run/api.sock" ]; do sleep 0.2; done
}
id() { causeway status --json --config "/run/$1/conf" | sed -n 's/.*"id": "\(.*\)",/\1/p' | head -n 1; }
receive() { # TO FROM: the node TO accepts files from the node FROM
    setsid causeway drop --config "/run/$1/conf" --from "$(id "$2")" "/run/$1/in" > "/run/$1/drop" 2>&1 < /dev/null &
}
send() { # FROM TO BYTES: send a file of BYTES bytes, and compare the received file
    head -c "$3" /dev/urandom > "/run/$1/photo-of-$1"
    began=$(cut -d ' ' -f 1 /proc/uptime)
    causeway send --config "/run/$1/conf" --wait 60 "/run/$1/photo-of-$1" "$2" > "/run/$1/send" 2>&1 || { cat "/run/$1/send"; exit 1; }
    cmp "/run/$1/photo-of-$1" "/run/$2/in/photo-of-$1"
    echo "$began $(cut -d ' ' -f 1 /proc/uptime)" | awk -v what="$1 to $2, $(($3 / 1000)) kB" '{ printf "%s in %.1f s\n", what, $2 - $1 }'
}

# The box uses one of the two controllers, and bob gets the other one.
used=$(causeway status | sed -n 's/^bluetooth-le *up *\(hci[01]\).*/\1/p')
case $used in hci0) free=hci1 ;; hci1) free=hci0 ;; *) causeway status; exit 1 ;; esac
peer bob << EOF
[bluetooth]
adapter = $free
[wifi-direct]
enabled = no
[ip]
enabled = no
EOF
peer carol << EOF
[bluetooth]
enabled = no
[wifi-direct]
mode = client
interface = wlan1
control-socket = /run/carol/wpa/global
[ip]
interfaces = p2p-*
EOF
peer dave << EOF
[bluetooth]
enabled = no
[wifi-direct]
enabled = no
EOF

ip netns add carol
ip netns add dave
iw phy "$(cat /sys/class/net/wlan1/phy80211/name)" set netns name carol
ip link add eth1 type veth peer name eth0 netns dave
ip link set eth1 up
ip -n dave link set lo up
ip -n dave link set eth0 up
ip -n carol link set lo up
mkdir -p /run/carol/wpa
printf 'ctrl_interface=/run/carol/wpa\nupdate_config=0\ndevice_name=carol\n' > /run/carol/wpa.conf
ip netns exec carol wpa_supplicant -B -Dnl80211 -iwlan1 -c/run/carol/wpa.conf -g/run/carol/wpa/global > /dev/null

run bob
run carol ip netns exec carol
run dave ip netns exec dave
receive dave carol
receive carol bob
receive bob dave
send carol dave 1000000
send bob carol 100000
send dave bob 100000
