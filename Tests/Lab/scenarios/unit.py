"""config/causeway.service under a real systemd: the README's installation on a fresh board, and everything that the
daemon needs inside its sandbox. The arguments are the parts to run. Without arguments all parts run in this order."""
# init: systemd
# seconds: 280

import os
import pathlib
import pwd
import re
import shutil
import signal
import sys
import time

from lab import (
    BluetoothAir, Box, Machine, Management, Node, Process, Supplicant, cable, check, classic, load_radios, main, panu, run, say, step,
    wait_until,
)
from lab.clock import set_synchronised
from lab.gpio import BUTTON, KEYS, LIGHT, Chip
from lab.hotplug import BLUETOOTH, WIFI, block, switches
from lab.led import LED
from lab.node import bearer
from lab.service import PROGRAM, UNIT_FILE, Service, carry_out_on_board, readme_commands
from lab.stage import links_up

EXPOSURE_MAX = 2.0

service = Service()


def install():
    with step("a fresh board follows the README"):
        # The README installs the binary for aarch64. The binary for this machine is moved to that path.
        shutil.move(PROGRAM, "/lab/build/aarch64/causeway")
        check(not os.path.exists("/etc/causeway"), "the board is fresh")
        for command in readme_commands():
            say(f"    $ {command}")
            if command.endswith("causeway status"):
                service.wait_status("answers", timeout=15)
            say("\n".join(f"    {line}".rstrip() for line in carry_out_on_board(command).splitlines()))
    exposure = run("systemd-analyze", "security", "--no-pager", "--offline=true", UNIT_FILE).splitlines()[-1]
    say(f"    $ systemd-analyze security --offline=true causeway.service\n    {exposure}")
    check(float(re.search(r"service: ([0-9.]+)", exposure)[1]) <= EXPOSURE_MAX, f"exposure is at most {EXPOSURE_MAX}")


def sandbox():
    with step("the sandbox is in force"):
        pid, status = service.pid, {}
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            key, value = line.split(":", 1)
            status[key] = value.strip()
        check(status["Uid"].split() == [str(pwd.getpwnam("causeway").pw_uid)] * 4, "it is a user of its own", status["Uid"])
        net_admin, net_bind_service = 1 << 12, 1 << 10
        for name in ("CapEff", "CapBnd", "CapPrm", "CapAmb"):
            check(int(status[name], 16) == net_admin | net_bind_service, f"{name} is these two", status[name])
        check(status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", "system calls are filtered", status["Seccomp"])
        mounts = service.mounts()
        for place in ("/", "/etc/causeway", "/sys", "/proc/sys", "/sys/fs/cgroup"):
            check("ro" in mounts.get(place, ()), f"{place} is read-only", mounts)
        for place in ("/var/lib/causeway", "/run/causeway"):
            check("rw" in mounts.get(place, ()), f"{place} is its own", mounts)
        check(service.inside("ls", "/root", "/home").splitlines() in ([], ["/home:", "", "/root:"]), "homes are hidden")
        check(service.inside("ls", "/tmp") == "", "its /tmp is its own")
        check("ttyS0" not in service.inside("ls", "/dev").split(), "devices are hidden")

    memory_mib = int(re.search(r"^MemoryMax=(\d+)M$", UNIT_FILE.read_text(), re.MULTILINE)[1])
    with step(f"{memory_mib} MiB of memory, no swap, 16 tasks; what takes more is killed, and the box comes back"):
        cgroup = service.cgroup()
        limits = {name: (cgroup / name).read_text().strip() for name in ("memory.max", "memory.swap.max", "pids.max")}
        wanted = {"memory.max": str(memory_mib << 20), "memory.swap.max": "0", "pids.max": "16"}
        check(limits == wanted, "limits are set", limits)
        waste = f"b'.' * ({memory_mib + 16} << 20)"
        hog = Process("hog", "bash", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec python3 -c "{waste}"')
        check(hog.wait(30) == -signal.SIGKILL, "16 MiB above it are too much")
        wait_until("the service was stopped for it", lambda: service.show("MainPID") not in ("0", str(pid)), 30)
        service.wait_status("answers again")


def radios():
    with step("Bluetooth and Wi-Fi Direct work from inside; the LED flashes, and is lit when bob is linked") as remark:
        air = BluetoothAir(controllers=2, wait=False)
        load_radios(1)
        led = LED("ACT")
        machine = Machine("box")
        Supplicant(machine, "wlan0")
        air.wait_ready()
        sections = {
            "board": {"status-led": "ACT"},
            "bluetooth": {"adapter": "hci0"},
            "wifi-direct": {"interface": "wlan0", "frequency": 2437},
            "ip": {"interfaces": "p2p-*"},
        }
        service.configure(sections)
        service.control("restart")
        service.wait_status("the radios are up", lambda status: {("bluetooth-le", "up"), ("wifi-direct", "group-owner")} <= {
            (bearer["name"], bearer["state"]) for bearer in status["bearers"]})
        doctor = service.cli("doctor", check=False)
        for found in ("hci0, hci1: Low Energy, at most 7 links", "wlan0: wlan0 supports Wi-Fi Direct"):
            check(found in doctor, "doctor asked the kernel for the radios", doctor)
        flashes, _ = led.pattern(6)
        check(2 <= flashes <= 4, "it flashes now and then", led.changes)
        bob = Node(Box("bob"), adapter="hci1")
        service.wait_status("bob is linked over Bluetooth", lambda status: links_up(status, "bluetooth-le"), 60)
        wait_until("it is lit", led.is_lit)
        wait_until("systemd knows of bob", lambda: service.show("StatusText") == "1 link, 1 peer", 20, 0.5)
        bob.stop()
        remark(f"{flashes} flashes in 6 s; systemd says “{service.show('StatusText')}”")
    with step("a peer over Bluetooth classic joins a bridge from inside, and leaves it when systemd restarts the daemon") as remark:
        classic.load()
        panu.load()
        run("ip", "link", "add", "br0", "address", "02:00:00:00:00:01", "type", "bridge", "forward_delay", "0")
        run("ip", "address", "add", "10.8.0.1/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        service.configure({**sections, "bluetooth": {"adapter": "hci0", "classic": "yes", "nap": "br0"}})
        service.control("restart")
        service.wait_status("is discoverable", lambda status: "discoverable" in bearer(status, "bluetooth-classic")["detail"])
        check("bluetooth" not in "".join(
            line for line in service.cli("doctor", check=False).splitlines() if "WRONG" in line), "doctor misses nothing")
        kernel, phone = Management(), Box("phone")
        classic.power_on(kernel, 1)
        channel, interface = panu.join(kernel.address(1), kernel.address(0), phone)
        phone.run("ip", "address", "add", "10.8.0.2/24", "dev", interface)
        wait_until("it reaches the box", lambda: phone.ping("10.8.0.1"), 20)
        remark(bearer(service.status(), "bluetooth-nap")["detail"])
        service.configure(sections)
        service.control("restart")
        wait_until("it has left", lambda: "bnep" not in run("ip", "-o", "link", "show", "master", "br0"), 10)
        check(panu.ends(channel, 10), "it is told")
        service.wait_status("the radios are up", lambda status: {("bluetooth-le", "up"), ("wifi-direct", "group-owner")} <= {
            (bearer["name"], bearer["state"]) for bearer in status["bearers"]})
    with step("rfkill blocks both radios: the status says so, although the sandbox hides /dev/rfkill; then both work again") as remark:
        names = ("bluetooth-le", "wifi-direct")
        numbers = [switches(BLUETOOTH)[0], switches(WIFI)[0]]
        check("rfkill" not in service.inside("ls", "/dev").split(), "the device is hidden")
        for number in numbers:
            block(number, True)
        service.wait_status("both are blocked", lambda status: all("rfkill unblock" in bearer(status, name)["problem"] for name in names))
        # After this time a retry with growing pauses would come late, and an event from the kernel comes at once.
        time.sleep(20)
        for number in numbers:
            block(number, False)
        began = time.monotonic()
        service.wait_status("both are up", lambda status: [bearer(status, name)["state"] for name in names] == ["up", "group-owner"], 30)
        remark(f"after {time.monotonic() - began:.1f} s")
    with step("SIGKILL: the LED blinks fast until the daemon is back") as remark:
        # systemd waits 10 s before a restart of the daemon, so that there is time to check the LED.
        service.drop_in("[Service]\nRestartSec=10\n")
        os.kill(service.pid, signal.SIGKILL)
        wait_until("systemd knows that it died", lambda: service.show("SubState") == "auto-restart", 15, 0.2)
        flashes, _ = led.pattern(3)
        check(flashes >= 10, "it blinks fast", led.changes)
        remark(f"{flashes} flashes in 3 s")
        service.drop_in(None)
        service.control("restart")
        service.wait_status("answers again")
    with step("the box stops: the LED is dark"):
        service.control("stop")
        check(led.pattern() == (0, False), "it is dark", led.changes)


def clock():
    """Test certificates with a wrong clock. From here on the wall clock of this machine is 400 days ahead."""
    flag = pathlib.Path("/run/systemd/timesync/synchronized")
    with step("the clock is not synchronised: a certificate that may have expired is good enough"):
        make_certificates("dave", days=100)
        set_synchronised(False)
        run("date", "--set", "+400 days")
        dave = Box("dave")
        near, far = cable(Machine("box"), dave)
        dave = Node(dave, interfaces=[far], start=False)
        dave.cli("identity", "import", "/tmp/dave.pem")
        service.configure({"trust": {"policy": "ca"}, "ip": {"interfaces": near}})
        service.control("restart")
        dave.start()
        status = service.wait_status("dave is linked", links_up, 60)
        check(status["box"]["clock_synchronised"] is False, "the status says so", status["box"])
    with step("systemd-timesyncd says that it is: the expired certificate is refused"):
        flag.parent.mkdir(exist_ok=True)
        flag.touch()
        service.wait_status("knows it", lambda status: status["box"]["clock_synchronised"])
        service.wait_status("dave is out", lambda status: not links_up(status))
        check("expired" in service.log(), "the log says why")
        check(service.log().count("systemd-timesyncd") == 1, "that only this flag counts is said once", service.log())
    with step("with another time service the unit lets the daemon ask the kernel; “doctor” says that this is needed"):
        flag.unlink()
        set_synchronised(True)
        service.control("restart")
        check(service.wait_status("answers")["box"]["clock_synchronised"] is False, "there is no flag")
        doctor = service.cli("doctor", check=False)
        check("SystemCallFilter=clock_adjtime" in doctor, "doctor knows the remedy", doctor)
        service.drop_in("[Service]\nProtectClock=no\nSystemCallFilter=clock_adjtime\n")
        service.control("restart")
        service.wait_status("the kernel counts", lambda status: status["box"]["clock_synchronised"])
        service.drop_in(None)
        dave.stop()


def make_certificates(name, days):
    """Make /tmp/NAME.pem: a key and its certificate, which is valid for `days`. The issuer is an authority that the box
    trusts."""
    pathlib.Path("/etc/causeway/anchors").mkdir(exist_ok=True)
    key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    run("bash", "-ec", f"""cd /tmp
        openssl req -x509 {key} -keyout ca.key -out /etc/causeway/anchors/ca.pem -days 3650 -subj /CN=Fleet \\
            -addext keyUsage=keyCertSign,cRLSign
        openssl req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}
        openssl x509 -req -in {name}.csr -CA /etc/causeway/anchors/ca.pem -CAkey ca.key -CAserial ca.srl -CAcreateserial -days {days} \\
            -out {name}.crt
        cat {name}.key {name}.crt > {name}.pem && chmod 600 {name}.pem""")


def restarts():
    service.configure({})
    service.control("restart")
    with step("SIGKILL: the daemon is back, with its key, its pins and the journal of the life before"):
        before = service.wait_status("answers")["box"]
        service.cli("identity", "trust", "0123456789abcdef0123456789abcdef", "--name", "carol")
        os.kill(service.pid, signal.SIGKILL)
        after = service.wait_status("answers again", lambda status: status["box"]["epoch"] != before["epoch"])["box"]
        check(after["id"] == before["id"] and after["epoch"] > before["epoch"], "it is the same box", (before, after))
        check("carol" in service.cli("identity", "show"), "it knows whom it pinned")
        for life in (before, after):
            check(f"started: epoch {life['epoch']}" in service.log(), "both starts stand in the journal", service.log())
    with step("a reload: a new level of the journal counts, in the same process"):
        pid = service.pid
        service.configure({"journal": {"level": "debug"}})
        service.control("reload")
        wait_until("the log has what debugs", lambda: service.status() and " debug " in service.cli("log", "--level", "debug"), 15)
        check(service.pid == pid, "it is the same process", (pid, service.pid))
        service.configure({})
        service.control("reload")
    with step("a reload with a mistake fails, and the daemon goes on with what it has"):
        pid = service.pid
        service.configure({"journal": {"level": "loud"}})
        run("bash", "-c", "! systemctl reload causeway", timeout=60)
        check("“loud” is not accepted" in run("journalctl", "--no-pager", "--unit", "causeway"), "systemd's journal says why")
        check(service.pid == pid, "it is the same process", (pid, service.pid))
        said = run("bash", "-c", "causeway status 2>&1")
        check("“loud” is not accepted" in said and "\nBEARER" in said, "the mistake keeps no command from the daemon", said)
        service.configure({})
        service.control("reload")
        service.wait_status("answers")
    with step("a daemon that hangs is killed and started again") as remark:
        pid = service.pid
        started = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        wait_until("another one runs", lambda: service.pid not in (0, pid), 90, 0.5)
        remark(f"after {time.monotonic() - started:.0f} s")
        check(service.wait_status("answers again")["box"]["uptime_seconds"] < 60, "it is a new one")
        check("watchdog" in run("journalctl", "--no-pager", "--unit", "causeway").lower(), "systemd says why")
    with step("a configuration with a mistake: six failures in a row, then the mistake is corrected: the box comes back") as remark:
        # The default limit of systemd is five starts within 10 s. An emulated machine needs longer for five starts, so
        # the interval is longer.
        directory = pathlib.Path("/run/systemd/system.conf.d")
        directory.mkdir()
        (directory / "slow.conf").write_text("[Manager]\nDefaultStartLimitIntervalSec=2min\n")
        run("systemctl", "daemon-reexec", timeout=60)
        service.configure({"node": {"nonsense": 1}})
        run("bash", "-c", "! systemctl restart causeway", timeout=60)

        def failed_often():
            check(service.show("ActiveState") != "failed", "systemd does not give up", service.show("Result"))
            return int(service.show("NRestarts")) >= 6

        wait_until("it is tried again and again", failed_often, 60, 0.2)
        remark(f"{service.show('NRestarts')} restarts")
        service.configure({})
        service.wait_status("answers again")


def board():
    with step("a light and a button at a GPIO chip work from inside, for the group of the rule for udev"):
        chip = Chip()
        # The scenario applies the udev rule of config/causeway.udev itself, because the lab has no udev.
        group, mode = re.search(r'GROUP="(\w+)", MODE="(\d+)"', pathlib.Path("/lab/config/causeway.udev").read_text()).groups()
        service.configure({"board": KEYS, "wifi-direct": {"control-socket": "/run/nowhere"}})
        service.control("restart")
        service.wait_status("may not use it", lambda status: any("no permission to open" in b["problem"] for b in status["bearers"]))
        shutil.chown(chip.device, "root", group)
        chip.device.chmod(int(mode, 8))
        for name, line in (("light", LIGHT), ("button", BUTTON)):
            wait_until(f"it has the {name}", lambda: chip.consumer(line) == "causeway", 15, 0.2)
        doctor = service.cli("doctor", check=False)
        check(re.search(r"good +gpio +lab-gpio:17", doctor) and re.search(r"good +button +lab-gpio:27", doctor), "doctor knows", doctor)
        blinks, _ = chip.pattern()
        check(blinks >= 5, "it blinks fast, as there is no wpa_supplicant", chip.changes)
    with step("SIGKILL, and a stop: the light is dark"):
        service.drop_in("[Service]\nRestartSec=10\n")
        os.kill(service.pid, signal.SIGKILL)
        wait_until("systemd knows that it died", lambda: service.show("SubState") == "auto-restart", 15, 0.2)
        check(chip.pattern() == (0, False), "it is dark", chip.changes)
        service.drop_in(None)
        service.control("restart")
        service.control("stop")
        check(chip.pattern() == (0, False), "it is dark", chip.changes)
        service.control("start")
        wait_until("it has the button", lambda: chip.consumer(BUTTON) == "causeway", 15, 0.2)
    with step("the button is held: systemd switches the board off, where root has enabled that"):
        poweroff = "causeway-poweroff.service"
        chip.press(5)
        wait_until("nobody does it", lambda: "no unit switches the board off" in service.log(), 20, 0.5)
        for name in (poweroff, "causeway-poweroff.path"):
            shutil.copy(f"/lab/config/{name}", f"/etc/systemd/system/{name}")
        check(run("systemd-analyze", "verify", "--man=no", poweroff, "causeway-poweroff.path") == "", "the units are right")

        def show(name):
            return run("systemctl", "show", "--value", "--property", name, poweroff)

        run("systemctl", "enable", "--now", "causeway-poweroff.path", timeout=60)
        check(show("SuccessAction") == "poweroff", "it would switch this machine off")
        drop_in = pathlib.Path(f"/etc/systemd/system/{poweroff}.d/lab.conf")
        drop_in.parent.mkdir()
        drop_in.write_text("[Unit]\nSuccessAction=none\n")
        run("systemctl", "daemon-reload", timeout=60)
        check(show("ExecMainExitTimestampMonotonic") == "0", "it has not run yet")
        chip.press(5)
        wait_until("it has run", lambda: show("ExecMainExitTimestampMonotonic") != "0", 20, 0.2)
        check(show("Result") == "success" and not os.path.exists("/run/causeway/poweroff"), "and has done its work", show("Result"))


PARTS = {part.__name__: part for part in (install, sandbox, radios, clock, restarts, board)}


def scenario():
    os.makedirs("/lab/build/aarch64")
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


main(scenario)
