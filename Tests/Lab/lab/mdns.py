"""Avahi on a box, with the D-Bus that it needs."""

from .story import wait_until


class MulticastDNS:
    """The dbus-daemon and avahi-daemon of a box. Both are ready when the constructor returns."""

    def __init__(self, box):
        self.box = box
        self._starts = 0
        self.start_bus()
        self.start()

    def start_bus(self):
        socket = self.box.path("/run/dbus/system_bus_socket")
        before = socket.exists() and socket.stat().st_ino
        self.bus = self.box.spawn("dbus", "dbus-daemon", "--system", "--nofork", "--nopidfile")
        wait_until(f"{self.box.name}: D-Bus", lambda: socket.exists() and socket.stat().st_ino != before)

    def start(self):
        self._starts += 1
        self.daemon = self.box.spawn("avahi", "avahi-daemon", "--no-drop-root", "--no-chroot", "--no-rlimits")
        wait_until(f"{self.box.name}: Avahi", lambda: self.box.path("/run/avahi-daemon/socket").exists())

    def is_ready(self):
        """Whether avahi-daemon has registered its host name since its last start."""
        return self.daemon.output().count("Server startup complete") == self._starts

    def publish(self, instance, service, port, *text):
        """Announce a service. The announcement lasts until the returned process ends."""
        announcer = self.box.spawn("avahi-publish", "avahi-publish", "-s", instance, service, port, *text)
        wait_until(f"{self.box.name} announces", lambda: "Established" in announcer.output())
        return announcer

    def browse(self, service, seconds=10):
        """Find the services of a type on the network. Returns [(interface, family, instance, host, address, port)]."""
        output = self.box.run(
            "timeout", seconds, "avahi-browse", "--resolve", "--terminate", "--parsable", service,
            check=False, timeout=seconds + 10,
        )
        found = []
        for line in output.splitlines():
            fields = line.split(";")
            if fields[0] == "=":
                _, interface, family, instance, _, _, host, address, port = fields[:9]
                found.append((interface, family, instance, host, address, int(port)))
        return found
