"""Complete daemons in comparison with similar programs: messages of one application through a box; a file from one
daemon to another, with scp and magic-wormhole over the same cable; and handshakes, with OpenSSL's own."""
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import costs
import small
from bench_network import BINARY, RELAY_IN, Daemon, Node, processor_seconds, wait

SSH_PORT, SSH_CIPHERS = 2222, ("aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com")
MAILBOX_PORT = 4000
WORMHOLE = pathlib.Path(__file__).resolve().parents[2] / "build/benchmarks/venv/bin"
COMMAND_SECONDS_MAX = 120
SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")


def missing():
    """The names of the programs for these comparisons that are not installed."""
    return [name for name, there in (("sshd", SSHD and shutil.which("scp")), ("magic-wormhole", (WORMHOLE / "wormhole").exists())) if not there]


MESSAGE = os.urandom(64)


class Application:
    """Messages of 64 bytes from an application in A to an application in B. As many messages are in flight as the local
    API allows. The daemons of both are linked only with the box."""

    def __init__(self, root, places, box):
        self.box = box
        self.nodes = [Node(root, name, place, f"{address}:{box.port}", relay=False).start()
                      for name, place, address in (("near", places.a, RELAY_IN), ("far", places.b, "10.77.2.1"))]
        wait("the daemons see each other", lambda: "far" in self.nodes[0].run("peers")[1])
        self.here, there = (small.Application(node) for node in self.nodes)
        self.here.meet(there)
        self.reader = small.reader_of(there)

    def measure(self, seconds):
        """Measure the box's processor seconds per message, and its forwarded frames per message, including those with
        acknowledgements."""
        frames, before = self.box.status["box"]["frames_forwarded"], self.box.processor_seconds()
        count, _ = self.here.send_for(seconds, MESSAGE)
        used = self.box.processor_seconds() - before
        return {"cost": used / count, "frames": (self.box.status["box"]["frames_forwarded"] - frames) / count}

    def end(self):
        os.kill(self.reader, signal.SIGKILL)
        os.waitpid(self.reader, 0)
        for node in self.nodes:
            node.stop()


class Files:
    """One file from A to R. All programs use the same directory, which is in memory if the machine has /dev/shm."""

    def __init__(self, root, places, size):
        self.root, self.places, self.size = pathlib.Path(root), places, size
        self.file = self.root / "file"
        with open(self.file, "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
        self.into = self.root / "into"
        self.receiver = Node(root, "receiver", places.relay, port=41830).start()
        self.sender = Node(root, "sender", places.a, f"{RELAY_IN}:41830").start()
        wait("the daemons see each other", lambda: "receiver" in self.sender.run("peers")[1])
        self.servers = []
        self.ways = {"Causeway": self.by_causeway}
        if "sshd" not in missing():
            self.start_sshd()
            for cipher in SSH_CIPHERS:
                self.ways[f"scp, {cipher.split('@')[0]}"] = lambda cipher=cipher: self.by_scp(cipher)
        if "magic-wormhole" not in missing():
            self.servers.append(places.relay.start(WORMHOLE / "twist", "wormhole-mailbox", "--port", f"tcp:{MAILBOX_PORT}",
                                                   "--channel-db", self.root / "mailbox", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.ways["magic-wormhole"] = self.by_wormhole

    def measure(self):
        """Measure the bytes per second of each program. The time is that of the sender's command, and the file must
        then be complete."""
        return {title: self.pass_on(way) for title, way in self.ways.items()}

    def pass_on(self, way):
        shutil.rmtree(self.into, ignore_errors=True)
        self.into.mkdir()
        seconds = way()
        if subprocess.run(["cmp", "-s", self.file, self.into / "file"]).returncode:
            raise SystemExit(f"the file did not arrive whole: {way}")
        return self.size / seconds

    def command(self, place, *words):
        return place.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    def timed(self, *words):
        begin = time.monotonic()
        process = self.command(self.places.a, *words)
        error = process.communicate(timeout=COMMAND_SECONDS_MAX)[1]
        if process.returncode:
            raise SystemExit(f"{words[0]}: {error.strip()[-500:]}")
        return time.monotonic() - begin

    def by_causeway(self):
        receiving = self.command(self.places.relay, BINARY, "receive", self.into, "--from", self.sender.id, "--count", 1,
                                 "--config", self.receiver.config)
        wait("the receiver is there", lambda: "receiver" in self.sender.run("browse", "--for", "1")[1])
        seconds = self.timed(BINARY, "send", self.file, "receiver", "--wait", 30, "--config", self.sender.config)
        receiving.communicate(timeout=COMMAND_SECONDS_MAX)
        return seconds

    def start_sshd(self):
        os.makedirs("/run/sshd", exist_ok=True)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.root / name], check=True)
        config = self.root / "sshd.conf"
        config.write_text(f"Port {SSH_PORT}\nHostKey {self.root}/host\nAuthorizedKeysFile {self.root}/user.pub\nStrictModes no\nUsePAM no\n"
                          f"PidFile none\nPermitRootLogin yes\nSubsystem sftp internal-sftp\nCiphers {','.join(SSH_CIPHERS)}\n")
        self.servers.append(self.places.relay.start(SSHD, "-D", "-f", config, stderr=subprocess.DEVNULL))

    def by_scp(self, cipher):
        return self.timed("scp", "-q", "-c", cipher, "-P", SSH_PORT, "-i", self.root / "user", "-o", "StrictHostKeyChecking=no", "-o",
                          "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-F", "none",
                          self.file, f"root@{RELAY_IN}:{self.into}/file")

    def by_wormhole(self):
        words = [WORMHOLE / "wormhole", "--relay-url", f"ws://{RELAY_IN}:{MAILBOX_PORT}/v1", "--transit-helper", ""]
        receiving = self.places.relay.start(*words, "receive", "--accept-file", "-o", self.into / "file", "1-beside-peers",
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = self.timed(*words, "send", "--hide-progress", "--code", "1-beside-peers", self.file)
        receiving.wait(COMMAND_SECONDS_MAX)
        return seconds

    def end(self):
        for process in self.servers:
            process.terminate()
            process.wait(10)
        for node in (self.sender, self.receiver):
            node.stop()


class Handshakes:
    """Complete mutual handshakes of TLS 1.3 with keys of P-256. The measured processor seconds are those of the dialled
    end."""

    def __init__(self, root):
        self.box = Daemon(root, "door").start()
        self.context = costs.client_context(root, ssl.TLSVersion.TLSv1_3)
        certificate = ["-cert", f"{root}/cert.pem", "-key", f"{root}/key.pem", "-CAfile", f"{root}/cert.pem"]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.server = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-tls1_3", "-Verify", "1", "-quiet", *certificate],
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = ["openssl", "s_time", "-connect", f"127.0.0.1:{port}", "-new", "-time", "1", "-tls1_3", *certificate]
        wait("openssl s_server answers", lambda: not socket.socket().connect_ex(("127.0.0.1", port)))

    def measure(self):
        before = processor_seconds(self.server.pid)
        out = subprocess.run(self.client, capture_output=True, text=True, timeout=30).stdout
        used = processor_seconds(self.server.pid) - before
        count = int(re.search(r"(\d+) connections in", out).group(1))
        return {"box": costs.handshake_cost(self.box, self.context)[0], "openssl": used / count}

    def end(self):
        self.server.kill()
        self.server.wait()
        self.box.stop()
