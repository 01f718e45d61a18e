"""A Causeway daemon on a box.

Only this file of the library depends on the daemon's configuration and command line."""

import json
import pathlib
import shutil

from .process import LOGS, run
from .story import CheckFailed, keep_at_end, wait_until

PROGRAM = "/usr/bin/causeway"
NODES = pathlib.Path("/tmp/nodes")


class Node:
    """One daemon. Its state remains when it is restarted. `kill` acts as a power cut, and `stop` ends it in order.

      adapter:    the Bluetooth controller ("hci0"), or None for a node without Bluetooth
      wifi:       the interface for Wi-Fi Direct ("wlan0"; a Supplicant must run in the box), or None
      interfaces: the IP interfaces (["eth0"]), or None for a node without IP
      extra:      {section: {key: value}} in addition to, or in place of, the values that follow from the other arguments"""

    def __init__(self, box, name=None, adapter=None, wifi=None, interfaces=None, extra=None, start=True):
        self.box = box
        self.name = name or box.name
        self.adapter = adapter
        self.directory = NODES / self.name
        self.state = self.directory / "state"
        self.runtime = self.directory / "run"
        self.configuration_file = self.directory / "causeway.conf"
        self.state.mkdir(parents=True, exist_ok=True)
        self.runtime.mkdir(parents=True, exist_ok=True)
        self.process = None
        self.wifi, self.interfaces, self.extra = wifi, interfaces, extra or {}
        self.configure(wifi, interfaces, self.extra)
        keep_at_end(self.keep_journal)
        if start:
            self.start()

    def configure(self, wifi, interfaces, extra):
        sections = {
            "node": {
                "display-name": self.name,
                "state-directory": self.state,
                "runtime-directory": self.runtime,
            },
            "bluetooth": {"enabled": _yes(self.adapter)},
            "wifi-direct": {"enabled": _yes(wifi)},
            "ip": {"enabled": _yes(interfaces)},
            "journal": {"level": "debug"},
        }
        if self.adapter:
            sections["bluetooth"]["adapter"] = self.adapter
        if wifi:
            sections["wifi-direct"]["interface"] = wifi
        if interfaces:
            sections["ip"]["interfaces"] = ", ".join(interfaces)
        for section, keys in extra.items():
            sections.setdefault(section, {}).update(keys)
        lines = []
        for section, keys in sections.items():
            lines.append(f"[{section}]")
            lines += [f"{key} = {value}" for key, value in keys.items()]
            lines.append("")
        self.configuration_file.write_text("\n".join(lines))

    def reconfigure(self, extra):
        """Add these values to the configuration. They take effect at the next start."""
        self.configure(self.wifi, self.interfaces, {**self.extra, **extra})

    # --- start and end -------------------------------------------------------------------------------------------------

    def start(self, wait=True):
        self.process = self.box.spawn(
            f"causeway-{self.name}", PROGRAM, "run", "--config", self.configuration_file, bluetooth=bool(self.adapter)
        )
        if wait:
            wait_until(f"{self.name} answers", self.is_answering, timeout=20, interval=0.1)

    def is_answering(self):
        if not self.process.is_running():
            raise CheckFailed(f"{self.name} ended with {self.process.wait()}: {self.process.output()[-2000:]}")
        try:
            return bool(self.status())
        except (CheckFailed, ValueError):
            return False

    def stop(self):
        """Send SIGTERM to the daemon and wait. Returns its exit status."""
        return self.process.terminate()

    def kill(self):
        """Send SIGKILL to the daemon and wait for its end."""
        return self.process.kill()

    def restart(self):
        self.stop()
        self.start()

    def forget(self):
        """Remove the state of a node that does not run. At its next start it is a new node."""
        shutil.rmtree(self.state)
        self.state.mkdir()

    def keep_journal(self):
        """Write the journal to the scenario's logs. The journal can be read even after the daemon was killed."""
        journal = self.cli("log", "--level", "debug", check=False)
        (LOGS / f"{self.name}.journal.log").write_text(journal)

    # --- the command line --------------------------------------------------------------------------------------------

    def cli(self, *arguments, check=True, timeout=30, input=None):
        """Run `causeway ARGUMENTS` with the configuration of this daemon. Returns the output."""
        # The options follow both words of a command such as `causeway identity VERB`.
        words = 2 if arguments[0] in ("peer", "identity") else 1
        command, rest = arguments[:words], arguments[words:]
        return self.box.run(
            PROGRAM, *command, "--config", self.configuration_file, *rest, check=check, timeout=timeout, input=input
        )

    def status(self):
        """The output of `causeway status --json`, parsed."""
        return json.loads(self.cli("status", "--json"))

    def wait_status(self, description, predicate, timeout=20):
        """Wait until predicate(status) is true. Returns the predicate's value."""
        try:
            return wait_until(f"{self.name}: {description}", lambda: predicate(self.status()), timeout, 0.2)
        except CheckFailed as failure:
            raise CheckFailed(f"{failure}; status: {self.cli('status', '--json', check=False)}") from None

    def resident_kib(self):
        return self.process.resident_kib()


def bearer(status, name):
    """The status of a bearer. For Wi-Fi Direct it is that of the radio, and not that of the group's interface."""
    return [bearer for bearer in status["bearers"] if bearer["name"] == name][-1]


def _yes(value):
    return "yes" if value else "no"


def firmware_exists():
    return pathlib.Path(PROGRAM).exists()


def firmware_version():
    return run(PROGRAM, "--version", check=False)
