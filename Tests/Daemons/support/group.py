"""A Wi-Fi group without Wi-Fi. A virtual cable replaces the radio, and a fake wpa_supplicant reports the group. The box's
end of the cable has the name and address of a group's interface. The phone is the network namespace at the other end.
Needs root."""
import socket
import subprocess
import threading

from daemons import BINARY, Daemon, wait

INTERFACE, ADDRESS = "p2p-wlan0-0", "192.168.49.1"
SSID, PASSPHRASE = "DIRECT-J8-Causeway", "Tl7Xdiji"


class Network:
    """A network namespace, which a waiting process keeps alive."""

    def __init__(self):
        self.keeper = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.keeper.stdout.readline() == "ready\n", "a network namespace needs root"

    def command(self, *words):
        return ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net", *map(str, words)]

    def run(self, *words, **options):
        return subprocess.run(self.command(*words), check=True, capture_output=True, text=True, timeout=60, **options).stdout

    def end(self):
        self.keeper.kill()
        self.keeper.wait()
        self.keeper.stdin.close()
        self.keeper.stdout.close()


class Supplicant(threading.Thread):
    """A fake of wpa_supplicant's global socket. It answers the requests of a group owner."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.client = None
        self.start()

    def run(self):
        while True:
            request, self.client = self.socket.recvfrom(4096)
            words = request.decode().split(" ")
            verb = words[1] if words[0].startswith("IFNAME=") else words[0]
            answers = {"PING": "PONG", "INTERFACES": "wlan0\np2p-dev-wlan0", "ADD_NETWORK": "0",
                       "LIST_NETWORKS": "network id / ssid / bssid / flags",
                       "STATUS": "mode=P2P GO\np2p_device_address=02:00:00:00:00:00"}
            try:
                self.socket.sendto(answers.get(verb, "OK").encode(), self.client)
            except OSError:
                continue            # the daemon has closed its socket
            if verb == "P2P_GROUP_ADD":
                self.tell(f'P2P-GROUP-STARTED {INTERFACE} GO ssid="{SSID}" freq=2437 passphrase="{PASSPHRASE}" '
                          "go_dev_addr=02:00:00:00:00:00")

    def tell(self, event):
        self.socket.sendto(f"<3>{event}".encode(), self.client)


class Owner(Daemon):
    """A daemon that owns a group, in its own network namespace, and a second namespace for the phone."""

    def __init__(self, root, name, extra="", **options):
        self.wifi = extra
        super().__init__(root, name, **options)
        self.network, self.phone = Network(), Network()
        # The interface replaces the radio in the daemon's configuration. No frames go over this interface.
        self.network.run("ip", "link", "add", "wlan0", "type", "veth", "peer", "name", "nothing")
        self.network.run("ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", "wlan0", "netns", self.phone.keeper.pid)
        self.network.run("ip", "link", "set", INTERFACE, "up")
        self.phone.run("ip", "link", "set", "wlan0", "up")
        self.supplicant = Supplicant(self.directory + "/wpa")

    def write(self):
        super().write()
        with open(self.config) as file:
            text = file.read()
        with open(self.config, "w") as file:
            file.write(text.replace("[wifi-direct]\nenabled = no\n", f"[wifi-direct]\ncontrol-socket = {self.directory}/wpa\n{self.wifi}\n"))

    def start(self):
        command = self.network.command("setpriv", "--pdeathsig", "KILL", BINARY, "run", "--config", self.config)
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait(f"{self.name} answers", lambda: self.run("status")[0] == 0)
        wait("it has a group", lambda: self.bearer("wifi-direct")["state"] == "group-owner")
        return self

    def bearer(self, name):
        """The last entry of a bearer in the daemon's status, or None."""
        return next((bearer for bearer in reversed(self.status["bearers"]) if bearer["name"] == name), None)

    def stop(self):
        super().stop()
        self.network.end()
        self.phone.end()
