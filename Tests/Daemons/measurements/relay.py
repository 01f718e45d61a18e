"""The cost of relaying: run.py BINARY relay [BYTES]

Three daemons run on the loopback interface: a – box – b. a and b are linked only with the box. Messages are sent from a
to b. The program measures the box's processor time and the rate of the data, in turn with and without sealing. For
comparison it measures round trips over a plain TCP connection, which are the fastest that this machine allows."""

import os
import socket
import statistics
import sys
import tempfile
import time

from line import CLEAR, SEALED, Network
from talk import Mode

ROUNDS = 3
SIZES = ((16_384, Mode.BULK), (64, Mode.RELIABLE))


def echo_round_trips(count=1000, pause=0.002):
    """Measure the limit of this machine: two processes and one TCP connection on the loopback interface. Each value is
    the microseconds of two round trips, because a relayed message crosses two links."""
    listener = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        connection = listener.accept()[0]
        while data := connection.recv(100):
            connection.send(data)
        os._exit(0)
    connection = socket.create_connection(listener.getsockname())
    times = []
    for _ in range(count):
        start = time.perf_counter()
        for _ in range(2):
            connection.send(b"echo")
            connection.recv(100)
        times.append((time.perf_counter() - start) * 1e6)
        time.sleep(pause)
    connection.close()
    os.wait()
    return percentiles(times)


def percentiles(values):
    ordered = sorted(values)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99)]


def measure(networks, byte_count):
    for title, network in networks.items():
        p50, p99 = percentiles(network.round_trips())
        print(f"{title}: round trip a – box – b and back: p50 {p50:.0f} µs, p99 {p99:.0f} µs")
        network.send(500, 16_384, Mode.BULK)
    for size, mode in SIZES:
        count = byte_count // ROUNDS // (size if mode == Mode.BULK else 16 * size)
        spent = {title: [] for title in networks}
        for _ in range(ROUNDS):
            for title, network in networks.items():
                spent[title].append(network.send(count, size, mode))
        best = {title: [min(column) for column in zip(*rounds)] for title, rounds in spent.items()}
        for title, (seconds, used, frames) in best.items():
            print(
                f"{title}: {count} messages of {size} bytes: {count / seconds / 1000:.1f} k/s,"
                f" {count * size / seconds / 1e6:.1f} MB/s; box {used / count * 1e6:.2f} µs a message,"
                f" {used / (count * size) * 1e9:.2f} s/GB; {frames / count:.2f} frames a message, acknowledgements among them")
        print(f"{size} bytes: the box's processor time sealed / in clear: {best[SEALED][1] / best[CLEAR][1]:.2f}")
    for title, network in networks.items():
        print(f"{title}: the box holds {network.box.resident_bytes() / 2**20:.1f} MiB")


def main():
    byte_count = int(sys.argv[1]) if len(sys.argv) > 1 else 256 << 20
    p50, p99 = echo_round_trips()
    print(f"limit: plain TCP echo, twice there and back: p50 {p50:.0f} µs, p99 {p99:.0f} µs")
    with tempfile.TemporaryDirectory() as root:
        networks = {title: Network(root, title) for title in (SEALED, CLEAR)}
        try:
            measure(networks, byte_count)
        finally:
            for network in networks.values():
                network.stop()


if __name__ == "__main__":
    main()
