"""The daemon as config/causeway.service runs it, on a machine whose process 1 is systemd. For scenarios with the line
`# init: systemd`."""

import json
import os
import pathlib
import shlex

from .process import LOGS, run
from .story import CheckFailed, check, keep_at_end, wait_until

NAME = "causeway.service"
UNIT_FILE = pathlib.Path("/etc/systemd/system") / NAME
CONFIGURATION_FILE = pathlib.Path("/etc/causeway/causeway.conf")
PROGRAM = "/usr/bin/causeway"


class Service:
    """The only daemon of the machine. All its paths have their default values."""

    def __init__(self):
        keep_at_end(self.keep_journals)

    def show(self, name):
        return run("systemctl", "show", "--value", "--property", name, NAME)

    @property
    def pid(self):
        """The process id of the daemon, or 0 if it does not run."""
        return int(self.show("MainPID"))

    def control(self, verb):
        """Run `systemctl VERB causeway`."""
        run("systemctl", verb, NAME, timeout=60)

    def configure(self, sections):
        """Write /etc/causeway/causeway.conf. It is read at the next start of the daemon."""
        lines = ["# The configuration of a scenario"]
        for section, keys in sections.items():
            lines += [f"[{section}]", *(f"{key} = {value}" for key, value in keys.items())]
        CONFIGURATION_FILE.write_text("\n".join(lines) + "\n")

    def drop_in(self, text):
        """Write an operator's changes of the unit, as `systemctl edit` does. They take effect at the next start. With
        None they are removed."""
        directory = pathlib.Path(f"{UNIT_FILE}.d")
        directory.mkdir(exist_ok=True)
        file = directory / "override.conf"
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        run("systemctl", "daemon-reload", timeout=60)

    def inside(self, *command):
        """Run a command in the daemon's mount namespace and root. Returns its output, even if it fails."""
        return run("nsenter", "--target", self.pid, "--mount", "--root", *command, check=False)

    def mounts(self):
        """The options of each mount in the daemon's mount namespace: {"/usr": ["ro", ...]}."""
        lines = pathlib.Path(f"/proc/{self.pid}/mountinfo").read_text().splitlines()
        return {words[4]: words[5].split(",") for words in map(str.split, lines)}

    def cgroup(self):
        """The directory of the control group in which the service runs."""
        return pathlib.Path(f"/sys/fs/cgroup{self.show('ControlGroup')}")

    # --- the command line --------------------------------------------------------------------------------------------

    def cli(self, *arguments, check=True, timeout=30):
        return run(PROGRAM, *arguments, check=check, timeout=timeout)

    def status(self):
        """The output of `causeway status --json`, parsed, or None if no daemon answers."""
        try:
            return json.loads(self.cli("status", "--json"))
        except (CheckFailed, ValueError):
            return None

    def wait_status(self, description, predicate=bool, timeout=30):
        """Wait until a daemon answers and predicate(status) is true. Returns the status."""

        def asked():
            status = self.status()
            return status if status and predicate(status) else None

        try:
            return wait_until(f"box: {description}", asked, timeout, 0.2)
        except CheckFailed as failure:
            raise CheckFailed(f"{failure}; {self.show('ActiveState')}; {self.cli('status', check=False)}") from None

    def log(self, *arguments):
        return self.cli("log", *arguments)

    def keep_journals(self):
        """Write the daemon's journal and the journal of systemd to the scenario's logs."""
        (LOGS / "box.journal.log").write_text(self.cli("log", "--level", "debug", check=False))
        (LOGS / "systemd.log").write_text(run("journalctl", "--no-pager", "--boot", check=False))


def readme_commands():
    """The commands of the section “Plain binary” in the README. They are for a board with the host name `box`."""
    section = pathlib.Path("/lab/README.md").read_text().split("\n### Plain binary\n")[1].split("\n## ")[0]
    return [line.strip() for line in section.splitlines() if line.startswith("    ")]


def carry_out_on_board(command):
    """Run an ssh or scp command for root@box on this machine instead, in the project's directory. Returns the output.
    `cp` replaces scp, and makes no directories either."""
    words = shlex.split(command)
    if words[:2] == ["ssh", "root@box"]:
        return run("bash", "-c", " ".join(words[2:]), timeout=60)
    check(words[0] == "scp" and words[-1].startswith("root@box:"), "a command for the board", command)
    os.chdir("/lab")
    return run("cp", *words[1:-1], words[-1].removeprefix("root@box:"))
