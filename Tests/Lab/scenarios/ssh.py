"""config/sshd: an account that reads the state of the box over SSH and has no other rights. A real sshd runs, and the
scenario tries every known way to get more rights."""
# init: systemd
# seconds: 140

import contextlib
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tarfile

from lab import Machine, Process, check, main, run, say, step, wait_until
from lab.service import UNIT_FILE, Service

ACCOUNT = "causeway-diag@127.0.0.1"
KEY, OTHER_KEY = "/tmp/key", "/tmp/other"
OPTIONS = ("-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
           "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes")
# The traces that a successful escape leaves: a new file, the output of `id`, or the contents of a protected file.
CANARY = pathlib.Path("/tmp/escaped")
SECRETS = ("uid=", "root:x:0", "PRIVATE KEY", "ESCAPED")

service = Service()

READING = ("status", "peers", "links", "routes", "radios", "log", "leds", "version", "help", "", "status --json", "links --json",
           "routes --json", "sessions", "sessions --json", "metrics", "capture --seconds 1", "top --once", "top --once --json", "log --level=debug --since 1h", "log  --level  warning", "status --help")
# Commands that the account must not be able to run.
WORDS = ("version; id", "version\nid", "version\rid", "version $(id)", "version `id`", "version | sh", "version && id", "version || id",
         "version & id", "version > /tmp/escaped", "version < /etc/passwd", "version /etc/*", "version 'a", "version \\\nid", "/bin/sh",
         "sh -c id", "bash", "-c id", "env", "exec sh", "../../bin/sh", "causeway status", "diagnose", "run", "reload", "selftest",
         "identity show", "identity export --key", "identity trust 0123456789abcdef0123456789abcdef", "config check --config /etc/shadow",
         "send /etc/passwd box", "receive /tmp", "drop /tmp", "chat", "pipe box", "accept chat", "browse",
         "status --config=/etc/shadow", "status --config /etc/shadow", "status --conf=/etc/shadow", "status -c/etc/shadow",
         "status -jc/etc/shadow", "status --sock=/run/causeway/api.sock", "status -s/run/causeway/api.sock", "log --journal=/etc/passwd",
         "log --jour /etc/passwd", "log --config /etc/shadow", "ping --config=/etc/shadow box", "trace -c/etc/shadow box", "explain --config=/etc/shadow box",
         "explain -s/run/causeway/api.sock box", "sessions --socket=/run/causeway/api.sock", "leds --ended",
         "leds --prepare", "capture --output=/tmp/escaped", "capture --out /tmp/escaped", "capture -o/tmp/escaped", "capture --payload --count 1",
         "metrics --textfile=/tmp/escaped", "metrics --text /tmp/escaped",
         "bundle --output=/tmp/escaped", "bundle -o/tmp/escaped", "bundle --out /tmp/escaped", "top --socket=/tmp/x", "status -- --config=/etc/shadow", "log --level --config=/etc/shadow", "stat", "statu --json", "STATUS", "x" * 70_000)


def ssh(*words, key=KEY, options=(), timeout=30, input=""):
    """Run ssh. Returns the exit status, or None after a timeout, and all output."""
    command = ["ssh", *OPTIONS, "-i", key, *options, ACCOUNT, *words]
    try:
        done = subprocess.run(command, input=input, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout)
    except subprocess.TimeoutExpired as stopped:
        return None, (stopped.stdout or b"").decode(errors="replace")
    except OSError as error:
        return 255, error.strerror       # the command line is longer than the kernel accepts
    return done.returncode, done.stdout


def escaped(said):
    return CANARY.exists() or any(secret in said for secret in SECRETS)


def connects(port):
    """Whether a server answers at this port of the loopback interface."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 2) as stream:
        stream.settimeout(2)
        return bool(stream.recv(20))
    return False


def scenario():
    with step("a box; the account is made as docs/operations/install.md says; sshd"):
        Machine("box")
        UNIT_FILE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("/lab/config/causeway.service", UNIT_FILE)
        for file in ("causeway.sysusers", "sshd/causeway.sysusers"):
            run("bash", "-c", f"systemd-sysusers - < /lab/config/{file}")
        run("bash", "-c", "echo 'u sshd - sshd /run/sshd' | systemd-sysusers -")
        pathlib.Path("/etc/causeway").mkdir()
        service.configure({"node": {"display-name": "box"}, "applications": {"group": "causeway-apps"}})
        run("systemctl", "daemon-reload", timeout=60)
        service.control("start")
        service.wait_status("answers")
        for key in (KEY, OTHER_KEY, "/etc/ssh/host"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        shutil.copy(f"{KEY}.pub", "/etc/causeway/diagnose_keys")
        # The files of sshd belong to the distribution: Debian's packages create these files during installation.
        pathlib.Path("/etc/ssh/sshd_config.d").mkdir(exist_ok=True)
        shutil.copy("/lab/config/sshd/causeway.conf", "/etc/ssh/sshd_config.d/")
        pathlib.Path("/etc/ssh/sshd_config").write_text(
            "Include /etc/ssh/sshd_config.d/*.conf\nHostKey /etc/ssh/host\nListenAddress 127.0.0.1\nUsePAM yes\n"
            "X11Forwarding yes\nAcceptEnv LANG LC_*\nSubsystem sftp /usr/lib/openssh/sftp-server\n")
        pathlib.Path("/etc/pam.d/sshd").write_text(
            "auth required pam_deny.so\naccount required pam_permit.so\nsession required pam_permit.so\n")
        pathlib.Path("/run/sshd").mkdir()
        run("/usr/sbin/sshd", "-t")
        sshd = Process("sshd", "/usr/sbin/sshd", "-D", "-e")
        wait_until("sshd answers", lambda: connects(22), 30, 0.3)

    with step(f"{len(READING)} commands read the box"):
        for words in READING:
            code, said = ssh(*([words] if words else []))
            # The box has no peers, so `routes --json` prints nothing.
            check(code == 0 and (said or words == "routes --json"), f"“{words}” is carried out", (code, said))
        check(json.loads(ssh("status", "--json")[1])["box"]["name"] == "box", "it is this box's status")
        code, said = ssh("ping", "nobody")
        check(code == 4 and "there is no peer" in said, "a command's own failure is passed on", (code, said))
        code, said = ssh("status", options=["-tt"])
        check(code == 0 and "BEARER" in said, "a terminal may be had", (code, said))
        code, said = ssh("top", options=["-tt"], input="q")
        check(code == 0 and "q quit" in said and said.endswith("\x1b[?1049l"), "“top” is a full screen", (code, said))
        done = subprocess.run(["ssh", *OPTIONS, "-i", KEY, ACCOUNT, "bundle"], capture_output=True, timeout=60)
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            names = [os.path.basename(name) for name in archive.getnames()]
        check(done.returncode == 0 and "status.json" in names and "journal.txt" in names, "“bundle” is an archive", (done.stderr, names))

    with step(f"{len(WORDS)} other commands are refused") as remark:
        for words in WORDS:
            code, said = ssh(words)
            check(code in (1, 2, 255) and not escaped(said), f"“{words[:60]}” is refused", (code, said[:300]))
            if code == 1:
                remark(f"“{words}” is tried and fails")
        check(service.cli("identity", "show").count("pinned") <= 1, "nothing was changed")

    with step("nor does SSH itself lead further"):
        tries = {
            "a shell": ssh("sh", options=["-tt"], input="id\nexit\n"),
            "no command, but input": ssh(input="id\n"),
            "the sftp subsystem": ssh("sftp", options=["-s"]),
            "another subsystem": ssh("../../bin/sh", options=["-s"]),
            "LD_PRELOAD": ssh("version", options=["-o", "SetEnv=LD_PRELOAD=/tmp/x.so"]),
            "BASH_ENV": ssh("version", options=["-o", "SetEnv=BASH_ENV=/tmp/evil ENV=/tmp/evil"]),
            "SSH_ORIGINAL_COMMAND": ssh("version", options=["-o", "SetEnv=SSH_ORIGINAL_COMMAND=sh"]),
            "LANG": ssh("version", options=["-o", "SetEnv=LANG=$(id) LC_ALL=`id`"]),
            "the agent": ssh("version", options=["-A"]),
            "X11": ssh("version", options=["-X"]),
            "-W to a port": ssh(options=["-W", "127.0.0.1:22"], timeout=10),
            "-W to the daemon's socket": ssh(options=["-W", "/run/causeway/control.sock"], timeout=10),
            "a tunnel device": ssh(options=["-o", "ExitOnForwardFailure=yes", "-w", "any", "-N"], timeout=10),
            "a port here": ssh(options=["-o", "ExitOnForwardFailure=yes", "-R", "9999:127.0.0.1:22", "-N"], timeout=10),
            "a socket here": ssh(options=["-o", "ExitOnForwardFailure=yes", "-R", "/tmp/escaped:127.0.0.1:22", "-N"], timeout=10),
            "another key": ssh("version", key=OTHER_KEY),
            "no key": ssh("version", options=["-o", "PubkeyAuthentication=no"]),
        }
        for what, (code, said) in tries.items():
            check(not escaped(said), f"{what}: no way out", (code, said[:300]))
        for what in ("-W to a port", "-W to the daemon's socket", "a tunnel device", "a port here", "a socket here", "another key", "no key"):
            check(tries[what][0] != 0 and "SSH-2.0" not in tries[what][1], f"{what}: refused", tries[what])
        pathlib.Path("/tmp/evil").write_text("touch /tmp/escaped\n")
        forward = Process("forward", "ssh", *OPTIONS, "-i", KEY, "-N", "-L", "8022:127.0.0.1:22", "-D", "8023", ACCOUNT)
        wait_until("the client listens", lambda: "8022" in run("ss", "-ltn"), 20, 0.3)
        check(not connects(8022), "nobody is reached by a port there")
        forward.terminate()
        for options in ((), ("-O",)):
            run("scp", *options, *OPTIONS, "-i", KEY, f"{ACCOUNT}:/etc/passwd", "/tmp/copied", check=False)
            run("scp", *options, *OPTIONS, "-i", KEY, "/etc/passwd", f"{ACCOUNT}:/tmp/escaped", check=False)
            check(not os.path.exists("/tmp/copied") and not CANARY.exists(), "scp copies nothing in either direction")
        say(f"             {len(tries) + 6} ways tried")
        check(sshd.is_running() and service.status(), "sshd and the daemon live")


main(scenario)
