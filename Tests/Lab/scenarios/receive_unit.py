"""config/causeway-receive.service in a user's own systemd. Files of a pinned peer arrive in ~/Downloads of an
unprivileged user, and files of other peers do not. The scenario also checks the sandbox, a disk quota, and that the
unit runs again after it or the box was killed."""
# init: systemd
# seconds: 90

import ctypes
import os
import pathlib
import re
import shutil
import signal
import struct

from lab import Box, Machine, Node, cable, check, main, run, say, step, wait_until
from lab.service import UNIT_FILE, Service

USER, HOME, NUMBER = "anna", pathlib.Path("/home/anna"), 1000
RUNTIME = f"/run/user/{NUMBER}"
NAME = "causeway-receive.service"
USER_UNIT_FILE = pathlib.Path("/etc/systemd/user") / NAME
EXPOSURE_MAX = 2.0

box = Service()


def as_user(*command, check=True):
    return run("setpriv", "--reuid", NUMBER, "--regid", NUMBER, "--clear-groups", "env", f"XDG_RUNTIME_DIR={RUNTIME}",
               f"HOME={HOME}", *command, check=check)


def show(name):
    return as_user("systemctl", "--user", "show", "--value", "--property", name, NAME)


def wait_running(former=0):
    """Wait until the service runs in a process other than `former`. Returns the process id."""
    def running():
        pid = int(show("MainPID"))
        return pid if pid not in (0, former) and show("ActiveState") == "active" else None

    return wait_until("the service runs", running, 30, 0.2)


def send(peer, name, code):
    """Send a file from a peer to the box and check the exit code of `causeway send`. Returns whether the file is in the
    folder."""
    file = pathlib.Path(f"/tmp/{name}")
    file.write_bytes(os.urandom(300_000))
    said = peer.box.run("bash", "-c", f'causeway send --config {peer.configuration_file} --wait 30 {file} box; echo "exit $?"', timeout=60)
    check(said.endswith(f"exit {code}"), f"the exit code is {code}", said)
    arrived = HOME / "Downloads" / name
    return arrived.exists() and arrived.read_bytes() == file.read_bytes()


def mount_with_quota(folder, user, kibibytes):
    """Mount a file system of 16 MiB on the folder, with a quota for a user."""
    image = pathlib.Path("/tmp/quota.img")
    image.write_bytes(b"")
    os.truncate(image, 16 << 20)
    run("mkfs.ext4", "-q", "-O", "quota", "-E", f"root_owner={user}:{user}", image)
    run("mount", "-o", "loop,usrquota", image, folder)
    run("rmdir", folder / "lost+found")
    device = run("findmnt", "--noheadings", "--output", "SOURCE", folder).strip()
    # quotactl(2): the command Q_SETQUOTA for a user. Only the block limits are valid (QIF_BLIMITS).
    limits = struct.pack("@8QI4x", kibibytes, kibibytes, 0, 0, 0, 0, 0, 0, 1)
    result = ctypes.CDLL(None, use_errno=True).quotactl(0x800008 << 8, device.encode(), user, limits)
    check(result == 0, "the quota is set", os.strerror(ctypes.get_errno()))


def scenario():
    with step("a box whose socket belongs to a group, with a user in it; a pinned peer and a stranger"):
        with open("/etc/passwd", "a") as file:
            file.write(f"{USER}:x:{NUMBER}:{NUMBER}::{HOME}:/usr/bin/bash\n")
        with open("/etc/group", "a") as file:
            file.write(f"{USER}:x:{NUMBER}:\n")
        run("bash", "-c", "systemd-sysusers - < /lab/config/causeway.sysusers")
        run("bash", "-c", f"echo 'm {USER} causeway-apps' | systemd-sysusers -")
        for folder in (HOME, HOME / "Downloads", pathlib.Path(RUNTIME)):
            folder.mkdir(parents=True, mode=0o700)
            os.chown(folder, NUMBER, NUMBER)
        (HOME / "secret").write_text("nobody's business")
        machine, friend, stranger = Machine("box"), Box("friend"), Box("stranger")
        (near, far), (other_near, other_far) = cable(machine, friend), cable(machine, stranger)
        UNIT_FILE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("/lab/config/causeway.service", UNIT_FILE)
        run("systemctl", "daemon-reload", timeout=60)
        pathlib.Path("/etc/causeway").mkdir()
        box.configure({"node": {"display-name": "box"}, "applications": {"group": "causeway-apps"}, "ip": {"interfaces": f"{near}, {other_near}"}})
        box.control("start")
        friend, stranger = Node(friend, interfaces=[far]), Node(stranger, interfaces=[other_far])
        box.wait_status("both are there", lambda status: len(status["peers"]) == 2, 60)
        box.cli("identity", "trust", friend.status()["box"]["id"], "--name", "friend")

    with step("the unit is without a fault, and is enabled by its user"):
        USER_UNIT_FILE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(f"/lab/config/{NAME}", USER_UNIT_FILE)
        run("systemd-run", f"--unit={USER}", f"--property=User={USER}", "--property=Delegate=yes",
            f"--setenv=XDG_RUNTIME_DIR={RUNTIME}", f"--setenv=HOME={HOME}", "/usr/lib/systemd/systemd", "--user")
        wait_until("the user's manager answers", lambda: as_user("systemctl", "--user", "is-system-running", check=False) in (
            "running", "degraded"), 30, 0.2)
        verified = as_user("systemd-analyze", "--user", "verify", USER_UNIT_FILE)
        check(verified == "", "systemd-analyze verify has nothing to say", verified)
        exposure = run("systemd-analyze", "security", "--no-pager", "--offline=true", USER_UNIT_FILE).splitlines()[-1]
        say(f"             {exposure}")
        check(float(re.search(r"service: ([0-9.]+)", exposure)[1]) <= EXPOSURE_MAX, f"exposure is at most {EXPOSURE_MAX}")
        as_user("systemctl", "--user", "enable", "--now", NAME.removesuffix(".service"))
        pid = wait_running()

    with step("the sandbox is in force"):
        status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        check(status["Uid"].split() == [str(NUMBER)] * 4, "it is the user's", status["Uid"])
        check((status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), "system calls are filtered", status)
        check({int(status[name], 16) for name in ("CapEff", "CapBnd", "CapPrm")} == {0}, "it has no capability", status)
        inside = pathlib.Path(f"/proc/{pid}/root")
        check(os.listdir(inside / "home/anna") == ["Downloads"], "of the home it sees that folder", os.listdir(inside / "home/anna"))
        lines = pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
        mounts = {words[4]: words[5].split(",") for words in map(str.split, lines)}
        check("ro" in mounts["/"] and "rw" in mounts[f"{HOME}/Downloads"], "only the folder can be written", mounts)
        check(os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/1/ns/net"), "it has no network")

    with step("a file of the pinned peer comes, one of the stranger does not"):
        check(send(friend, "letter", 0), "the letter is in Downloads")
        check((HOME / "Downloads/letter").stat().st_uid == NUMBER, "and is the user's")
        check(not send(stranger, "advert", 6), "the stranger's is not")
        check(os.listdir(HOME / "Downloads") == ["letter"], "nothing else is there", os.listdir(HOME / "Downloads"))

    with step("what the user's disk quota does not leave is refused before a byte of it comes"):
        as_user("systemctl", "--user", "stop", NAME)
        # The quota is less than the free space of the file system on which it is set.
        mount_with_quota(HOME / "Downloads", NUMBER, kibibytes=250)
        as_user("systemctl", "--user", "start", NAME)
        pid = wait_running(pid)
        check(not send(friend, "large", 6), "it is not there")
        check(os.listdir(HOME / "Downloads") == [], "nothing was begun", os.listdir(HOME / "Downloads"))
        as_user("systemctl", "--user", "stop", NAME)
        run("umount", HOME / "Downloads")
        as_user("systemctl", "--user", "start", NAME)
        pid = wait_running(pid)

    with step("killed, it is back; when the box is restarted it waits for it"):
        os.kill(pid, signal.SIGKILL)
        pid = wait_running(pid)
        check(send(friend, "second", 0), "the second file is there")
        box.control("restart")
        box.wait_status("both are there", lambda status: len(status["peers"]) == 2, 60)
        check(send(friend, "third", 0), "the third file is there")
        check(wait_running() == pid, "it is the same process")


main(scenario)
