"""Kill the real binary at every system call of every write of its state.

Each command runs under strace, which kills the command (SIGKILL) on entry to the N-th call of one kind. The program
tests all kinds of calls that a write uses, and every N up to the number of calls. After each kill the state must load,
and must be the old or the new state. Needs strace.
"""
# seconds: 120
import collections
import re
import shutil
import subprocess
import tempfile

from daemons import Daemon

CALLS = ["openat", "open", "write", "fsync", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat",
         "close", "mkdir", "flock", "fstat", "newfstatat", "read"]
ID = "00112233445566778899aabbccddeeff"


def look(box):
    """The state as `identity show` prints it: the node, its pins and its revocations. None if there is no key."""
    code, out, err = box.run("identity", "show")
    if code != 0 and "there is no key yet" in err:
        return None
    assert code == 0, f"the state does not load: {err}"
    assert "damaged" not in err, err
    return tuple(re.findall(r"^(?:node|pinned|revoked) .*$", out, re.M))


def kill(box, words, call, number):
    """Run the command under strace. Returns whether strace killed the command at call `number` of this kind."""
    command = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"]
    from daemons import BINARY
    done = subprocess.run(command + [BINARY, *words, "--config", box.config], capture_output=True, text=True, timeout=60)
    return done.returncode in (-9, 137)


def main():
    assert shutil.which("strace"), "strace is missing: apt-get install strace"
    points = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="causeway-") as root:
        box = Daemon(root, "box")
        pem = root + "/other.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", pem], check=True,
                       capture_output=True)
        steps = [
            ("make a key", [], ["identity", "new"]),
            ("import a key", [["identity", "new"]], ["identity", "import", pem, "--replace"]),
            ("pin", [["identity", "new"]], ["identity", "trust", ID, "--name", "bob"]),
            ("forget a pin", [["identity", "new"], ["identity", "trust", ID, "--name", "bob"]], ["identity", "untrust", "bob"]),
            ("revoke", [["identity", "new"], ["identity", "trust", ID, "--name", "bob"]], ["identity", "revoke", ID, "--yes"]),
        ]
        for title, before, words in steps:
            shutil.rmtree(box.state, ignore_errors=True)
            for command in before:
                assert box.run(*command)[0] == 0, command
            kept = root + "/kept"
            shutil.rmtree(kept, ignore_errors=True)
            if before:
                shutil.copytree(box.state, kept)
            old = look(box)
            outcomes = collections.Counter()
            for call in CALLS:
                for number in range(1, 200):
                    shutil.rmtree(box.state, ignore_errors=True)
                    if before:
                        shutil.copytree(kept, box.state)
                    if not kill(box, words, call, number):
                        break
                    points[title] += 1
                    found = look(box)
                    outcomes["old" if found == old else "new"] += 1
                    # A new key has no expected value. Pins and revocations must be all old or all new.
                    if title in ("pin", "forget a pin", "revoke") and found != old:
                        assert found == new(box, before, words, kept), (title, call, number, found)
                    # A second run succeeds beside the files that the kill has left. The second run fails only if the
                    # first run has already taken effect.
                    again = box.run(*words, *(["--replace"] if title == "make a key" else []))
                    isDone = title in ("pin", "forget a pin", "revoke") and found != old
                    assert again[0] == (1 if isDone else 0), (title, call, number, again)
            assert points[title] > 5, f"{title}: strace does not inject here"
            assert outcomes["old"] and outcomes["new"], (title, outcomes)
            print(f"ok  {title}: killed at {points[title]} calls, {outcomes['old']} times the old state, "
                  f"{outcomes['new']} times the new one")
    print(f"{sum(points.values())} kills, the state always loaded")


_expected = {}


def new(box, before, words, kept):
    """The expected state after the command, from a run without a kill."""
    key = tuple(words)
    if key not in _expected:
        saved = box.state + ".saved"
        shutil.rmtree(saved, ignore_errors=True)
        shutil.copytree(box.state, saved)
        shutil.rmtree(box.state)
        shutil.copytree(kept, box.state)
        assert box.run(*words)[0] == 0
        _expected[key] = look(box)
        shutil.rmtree(box.state)
        shutil.move(saved, box.state)
    return _expected[key]


if __name__ == "__main__":
    main()
