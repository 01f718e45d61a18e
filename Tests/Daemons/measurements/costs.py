"""The cost of security: run.py BINARY costs

Measures three things: the handshake of a link, with a Python TLS client; the handshake of a sealed channel between two
nodes, over one link and through two relays; and the memory of idle links. Processor time is what the kernel's scheduler
counts for each process. Bytes are the payload of TCP on the links, including TLS records."""

import socket
import ssl
import statistics
import subprocess
import tempfile
import time

from daemons import Daemon, Watch, wait

ROUNDS = 50
PEERS_FEW, PEERS_MANY = 4, 44


def link_handshake(root):
    """Measure complete handshakes with certificates of both ends, one after the other, each from its own address."""
    box = Daemon(root, "door").start()
    try:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            cost, sent, received = handshake_cost(box, client_context(root, version))
            print(f"link, {version.name[:3]} {version.name[3:].strip('v').replace('_', '.')}: box {cost * 1e3:.2f} ms; "
                  f"client to box {sent:.0f} bytes, back {received:.0f}")
    finally:
        box.stop()


def client_context(root, version):
    """The TLS context of a client with its own certificate. The certificate and key are in cert.pem and key.pem of
    `root`."""
    subprocess.run(
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {root}/key.pem -out {root}/cert.pem"
        " -days 30 -subj /CN=client", shell=True, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(f"{root}/cert.pem", f"{root}/key.pem")
    return context


def handshake_cost(box, context):
    """The box's processor seconds for one handshake, without accepting and closing the connection; the bytes to the
    box, and the bytes back."""
    idle = per_round(box, lambda number: plain(box, number))
    sizes = []
    spent = per_round(box, lambda number: sizes.append(handshake(context, box, number)))
    return spent - idle, *(statistics.median(column) for column in zip(*sizes))


def per_round(box, act):
    before = box.processor_seconds()
    for number in range(ROUNDS):
        act(number)
    time.sleep(0.5)
    return (box.processor_seconds() - before) / ROUNDS


def plain(box, number):
    with socket.create_connection(("127.0.0.1", box.port), source_address=(f"127.3.0.{number + 1}", 0)):
        pass


def handshake(context, box, number):
    """Complete one handshake. Returns the numbers of bytes that the client has sent and received until then."""
    with socket.create_connection(("127.0.0.1", box.port), 5, (f"127.3.1.{number + 1}", 0)) as connection:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing)
        sent = received = 0
        while True:
            try:
                tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            data = outgoing.read()
            sent += len(data)
            connection.sendall(data)
            if done:
                return sent, received
            data = connection.recv(65_536)
            received += len(data)
            incoming.write(data)


def channel_handshake(root, relays):
    """Measure a first probe between two nodes, which needs a handshake, and a second probe, which needs none."""
    line = [Daemon(root, f"relay{relays}-{number}") for number in range(relays)]
    for near, far in zip(line, line[1:]):
        near.peers = [far]
        near.write()
    b = Daemon(root, f"b{relays}", line[-1:], relay=False)
    a = Daemon(root, f"a{relays}", line[:1] or [b], relay=False)
    daemons = [*line, b, a]
    for daemon in daemons:
        daemon.start()
    try:
        watch = Watch(a)
        to = watch.wait_peer(b.name)
        time.sleep(4)
        figures = []
        for _ in range(2):
            before = [(daemon.processor_seconds(), traffic(daemon)) for daemon in daemons]
            start = time.monotonic()
            watch.probe(to)
            seconds = time.monotonic() - start
            time.sleep(1)
            after = [(daemon.processor_seconds(), traffic(daemon)) for daemon in daemons]
            figures.append((seconds, [(now[0] - then[0], now[1] - then[1]) for then, now in zip(before, after)]))
        (first, with_handshake), (second, without) = figures
        cost = [(x[0] - y[0], x[1] - y[1]) for x, y in zip(with_handshake, without)]
        ends = sum(processor for processor, _ in cost[-2:])
        print(f"channel, {relays + 1} link{'s' * (relays > 0)}: the first probe is answered after {first * 1e3:.1f} ms, the next after {second * 1e3:.1f} ms; processor: "
              f"both ends {ends * 1e3:.2f} ms"
              + (f", each relay {statistics.mean(x for x, _ in cost[:relays]) * 1e3:.2f} ms" if relays else "")
              + f"; {cost[-1][1]} bytes on the first link, both ways")
    finally:
        for daemon in daemons:
            daemon.stop()


def traffic(daemon):
    return sum(link["bytes_sent"] + link["bytes_received"] for link in daemon.status["links"])


def idle_links(root):
    """Measure the resident memory of a box with few neighbours and with many. Each neighbour is a real node."""
    box = Daemon(root, "hub").start()
    peers = []
    try:
        at = {}
        for count in (PEERS_FEW, PEERS_MANY):
            while len(peers) < count:
                peers.append(Daemon(root, f"leaf{len(peers)}", [box], relay=False).start())
            wait(f"{count} links", lambda: len(box.neighbours()) == count, 60)
            time.sleep(5)
            at[count] = box.resident_bytes()
        each = (at[PEERS_MANY] - at[PEERS_FEW]) / (PEERS_MANY - PEERS_FEW)
        print(f"idle links: box {at[PEERS_FEW] / 2**20:.1f} MiB with {PEERS_FEW}, {at[PEERS_MANY] / 2**20:.1f} MiB with "
              f"{PEERS_MANY}: {each / 1024:.1f} KiB a link and its node's advertisements")
    finally:
        for daemon in (*peers, box):
            daemon.stop()


def main():
    with tempfile.TemporaryDirectory(prefix="causeway-") as root:
        link_handshake(root)
        for relays in (0, 2):
            channel_handshake(root, relays)
        idle_links(root)


if __name__ == "__main__":
    main()
