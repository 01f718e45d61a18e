"""Causeway daemons on the loopback interface, each with a directory of its own, for the tests beside this file."""
import itertools
import json
import os
import re
import subprocess
import sys
import time

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "build/x86_64/causeway"
_ports = itertools.count(20000 + os.getpid() * 7 % 20000)


class Daemon:
    """One box: `start`, then read and change it by the commands of the same binary."""

    def __init__(self, root, name, peers=(), trust="", display=None):
        self.directory = os.path.join(root, name)
        os.makedirs(self.directory + "/run", exist_ok=True)
        self.name, self.port, self.process = name, next(_ports), None
        self.display, self.peers, self.trust = display or name, list(peers), trust
        self.write()

    def write(self):
        peers = "".join(f"peers = 127.0.0.1:{peer.port}\n" for peer in self.peers)
        with open(self.config, "w") as file:
            file.write(
                f"[node]\ndisplay-name = {self.display}\nstate-directory = {self.directory}/state\n"
                f"runtime-directory = {self.directory}/run\n[trust]\n{self.trust}\n"
                f"[ip]\nport = {self.port}\nloopback = yes\ninterfaces = lo\n{peers}"
                "[bluetooth]\nenabled = no\n[wifi-direct]\nenabled = no\n[discovery]\ndns-sd = off\n")

    @property
    def config(self):
        return self.directory + "/conf"

    @property
    def state(self):
        return self.directory + "/state"

    def run(self, *words, **options):
        """A command with this box's configuration: exit status, output, errors."""
        done = subprocess.run([BINARY, *words, "--config", self.config], capture_output=True, text=True, timeout=30, **options)
        return done.returncode, done.stdout, done.stderr

    def identity(self, *words):
        """An `identity` command that is to succeed; its output."""
        code, out, err = self.run("identity", *words)
        assert code == 0, (words, code, err)
        return out

    @property
    def id(self):
        return re.search(r"^node +(\w+)$", self.identity("show"), re.M).group(1)

    def start(self):
        self.process = subprocess.Popen([BINARY, "run", "--config", self.config], stderr=subprocess.DEVNULL)
        wait(f"{self.name} answers", lambda: self.run("status")[0] == 0)
        return self

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(10)
            self.process = None

    @property
    def status(self):
        return json.loads(self.run("status", "--json")[1])

    def neighbours(self):
        return sorted(link["name"] for link in self.status["links"] if link["state"] == "up")

    def log(self, level="info"):
        return self.run("log", "--level", level)[1]


def wait(what, predicate, seconds=15):
    """Ask until it is true; what did not become true is an error."""
    end = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.1)
