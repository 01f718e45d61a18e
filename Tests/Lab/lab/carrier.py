#!/usr/bin/env python3
"""carrier.py PORT OWN BOX CHANNEL: carries TCP connections over RFCOMM.

The program lets a node without support for Bluetooth classic act as a peer whose only radio is Bluetooth classic. It
accepts TCP connections at PORT of this machine, one at a time. It carries their bytes from the controller with the
address OWN to the channel of the controller BOX. The end of either connection ends the other one."""

import pathlib
import select
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from lab.classic import connect_rfcomm  # noqa: E402


def carry(one, other):
    """Carry bytes in both directions until one of the two connections ends."""
    routes = {one: other, other: one}
    while True:
        for source in select.select(list(routes), [], [])[0]:
            data = source.recv(4096)
            if not data:
                return
            routes[source].sendall(data)


def main(port, own, box, channel):
    listener = socket.create_server(("127.0.0.1", int(port)))
    while True:
        node, _ = listener.accept()
        try:
            with node, connect_rfcomm(own, box, int(channel)) as link:
                link.settimeout(None)
                print("connected", flush=True)
                carry(node, link)
        except OSError as error:
            print(error, flush=True)


main(*sys.argv[1:])
