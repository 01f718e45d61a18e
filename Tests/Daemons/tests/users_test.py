"""The daemon as an unprivileged user, and the rights of other users.

A real daemon runs on the loopback interface, started as config/causeway.service does. Needs root, to act as other
users."""
# seconds: 90
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
import unittest

import causeway
from daemons import BINARY, DaemonsTest, wait

DAEMON, APPLICATIONS, ANYBODY, SOMEBODY = 54320, 54321, 54322, 54323
ID = "00112233445566778899aabbccddeeff"
DONE, WELCOME, SERVICES, INVALID, FULL = 128, 129, 130, 3, 6


class Raw:
    """A connection to a daemon's api.sock that sends raw packets and reads their answers."""

    def __init__(self, box):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20)
        self.socket.connect(f"{box.directory}/run/api.sock")

    def ask(self, packet):
        """Send a packet. Returns its answer: the code of `done`, or None for a welcome, and the text."""
        self.socket.sendall(packet)
        return self.next()

    def next(self):
        while True:
            event = self.event()
            if event[0] == WELCOME:
                return None, ""
            if event[0] == DONE:
                return event[5], event[7 : 7 + event[6]].decode()

    def event(self):
        return self._exactly(struct.unpack(">I", self._exactly(4))[0])

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError(data)
            data += part
        return data


def greet(box, name):
    """Connect and send a hello. Returns the connection and an empty text, or None and the reason of the refusal."""
    raw = Raw(box)
    try:
        code, text = raw.ask(causeway.hello(1, name))
    except OSError:
        code, text = raw.next()         # the daemon refused the connection before the hello
    return (raw, "") if code is None else (None, text)


class Other:
    """A process of another user. It calls `work` with a list for open objects and reports the result. The objects stay
    open until `end`."""

    def __init__(self, user, groups, work):
        result, tell = os.pipe()
        hold, self._leave = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            try:
                os.close(self._leave)
                os.setgroups(groups)
                os.setgid(user)
                os.setuid(user)
                kept = []
                try:
                    said = {"result": work(kept)}
                except Exception as error:
                    said = {"error": repr(error)}
                os.write(tell, json.dumps(said).encode())
                os.close(tell)
                os.read(hold, 1)
            finally:
                os._exit(0)
        os.close(tell)
        os.close(hold)
        with os.fdopen(result) as file:
            said = json.loads(file.read())
        if "error" in said:
            self.end()
            raise AssertionError(f"as user {user}: {said['error']}")
        self.result = said["result"]

    def end(self):
        if self._process:
            os.close(self._leave)
            os.waitpid(self._process, 0)
            self._process = None


class UsersTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        # The program is copied into a directory that every user can enter, so that every user can run it.
        self.program = self.path("causeway")
        shutil.copy(BINARY, self.program)
        os.chmod(self.root, 0o755)

    def box(self, extra="", peers=()):
        """A daemon that runs with its own user and group."""
        box = self.daemon("box", *peers, extra=extra)
        for path in (box.directory, box.directory + "/run"):
            os.chown(path, DAEMON, DAEMON)
            os.chmod(path, 0o755)
        os.chmod(box.config, 0o644)
        return self.start(box)

    def start(self, box):
        box.process = subprocess.Popen([self.program, "run", "--config", box.config], stderr=subprocess.DEVNULL,
                                       user=DAEMON, group=DAEMON, extra_groups=[], umask=0o077)
        wait(f"{box.name} answers", lambda: box.run("status")[0] == 0)
        return box

    def as_user(self, box, *words, groups=(), user=ANYBODY):
        """Run a command as a user who is neither root nor the user of the daemon. Returns exit status, output and
        errors."""
        done = subprocess.run([self.program, *words, "--config", box.config], capture_output=True, text=True, timeout=30,
                              user=user, group=user, extra_groups=groups)
        return done.returncode, done.stdout, done.stderr

    def other(self, user, groups, work):
        other = Other(user, groups, work)
        self.addCleanup(other.end)
        return other

    def applications_box(self, *peers):
        return self.box(f"[applications]\ngroup = {APPLICATIONS}\n", peers)

    def browse(self, box, groups=()):
        return self.as_user(box, "browse", "--for", "1", groups=groups)

    def test_what_root_writes_the_daemon_can_read(self):
        box = self.box()
        box.stop()
        box.identity("trust", ID, "--name", "carol")
        for entry in os.scandir(box.state):
            status = entry.stat()
            self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o077), (DAEMON, DAEMON, 0), entry.name)
        self.start(box)
        self.assertIn("carol", box.identity("show"))
        box.identity("trust", ID[::-1], "--name", "dora")

    def test_members_of_its_group_read_and_change_nothing(self):
        box = self.box()
        for words in (("status",), ("log",)):
            code, out, err = self.as_user(box, *words, groups=[DAEMON])
            self.assertEqual((code, err), (0, ""), words)
            self.assertNotEqual(out, "", words)
        for words, said in ((("reload",), "only root may reload"), (("join",), "only root and the daemon's user may see the passphrase"),
                            (("identity", "trust", ID), "only root and the daemon's user may")):
            code, _, err = self.as_user(box, *words, groups=[DAEMON])
            self.assertEqual(code, 1, words)
            self.assertIn(said, err)
        self.assertNotIn(ID, box.identity("show"))

    def test_members_of_its_group_see_no_passphrase_after_a_reload_that_failed(self):
        box = self.box()
        with open(box.config) as file:
            good = file.read()
        # The user's group may use the socket, but cannot read the daemon's configuration. So the user has a separate
        # configuration.
        os.chown(box.config, DAEMON, DAEMON)
        os.chmod(box.config, 0o600)
        config = self.path("member.conf")
        with open(config, "w") as file:
            file.write(f"[node]\nruntime-directory = {box.directory}/run\nstate-directory = {self.path('none')}\n")
        os.chmod(config, 0o644)
        for slip in ("[mesh]\nfrequency = 2437 passphrase = SuperSecret99\n", "[mesh]\npassphrase Super=Secret99xyz\n",
                     "[mesh passphrase = SuperSecret99]\n", "[mesh]\nssid = attic SuperSecret99 on channel six\nSuperSecret99 = passphrase\n"):
            with open(box.config, "w") as file:
                file.write(good + slip)
            code, _, said = box.run("reload", "--socket", box.directory + "/run/control.sock")
            self.assertEqual(code, 1, said)
            self.assertIn("not reloaded", said)
            for words in (("log",), ("status",), ("doctor",), ("bundle", "--names", "--output", "-")):
                done = subprocess.run([self.program, *words, "--config", config], capture_output=True, timeout=60, user=ANYBODY,
                                      group=ANYBODY, extra_groups=[DAEMON])
                text = (done.stdout + done.stderr).decode(errors="replace")
                if words[0] != "doctor":
                    self.assertIn("not reloaded", text, words)
                said += text
            for part in ("Super", "Secret99", "ecret9"):
                self.assertNotIn(part, said)

    def test_members_of_its_group_capture_headers_and_no_payloads(self):
        box = self.box()
        path = self.path("capture")
        for words, code, said in ((("--payload",), 1, "only root and the daemon's user may see payloads; omit --payload"),
                                  (("--seconds", "1"), 0, "0 frames captured")):
            with open(path, "wb") as file:
                done = subprocess.run([self.program, "capture", *words, "--config", box.config], stdout=file, stderr=subprocess.PIPE,
                                      text=True, timeout=30, user=ANYBODY, group=ANYBODY, extra_groups=[DAEMON])
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertEqual(os.path.getsize(path), 0 if code else 24)

    def test_a_configuration_that_its_group_may_not_read_is_no_fault(self):
        box = self.box()
        # The configuration and the socket are at their default places. The default places are mounted for this one
        # command only.
        places = ("mount -t tmpfs none /etc && mount -t tmpfs none /run && mkdir /etc/causeway /run/causeway && "
                  f"cp {box.config} /etc/causeway/causeway.conf && chmod 600 /etc/causeway/causeway.conf && "
                  f"mount --bind {box.directory}/run /run/causeway && "
                  f"exec setpriv --reuid {ANYBODY} --regid {ANYBODY} --groups {DAEMON} {self.program} ")
        for words, said in (("status", box.id), ("log", "started"), ("doctor", "run this as root")):
            done = subprocess.run(["unshare", "--mount", "sh", "-c", places + words], capture_output=True, text=True, timeout=30)
            self.assertIn(said, done.stdout, done.stderr)
            self.assertEqual(done.stderr, "", words)

    def test_others_do_not_even_read(self):
        box = self.box()
        for words in (("status",), ("log",), ("browse", "--for", "1")):
            code, out, err = self.as_user(box, *words)
            self.assertNotEqual(code, 0, words)
            self.assertEqual(out, "", words)
            self.assertIn("ermission denied", err)

    def test_only_members_of_the_applications_group_are_applications(self):
        box = self.box(f"[applications]\ngroup = {APPLICATIONS}\n")
        self.assertEqual(self.browse(box, [APPLICATIONS])[0], 0)
        self.assertEqual(box.run("browse", "--for", "1")[0], 0)
        for groups in ([], [DAEMON]):
            code, _, err = self.browse(box, groups)
            self.assertEqual(code, 1)
            self.assertIn(f"only root and members of the group “{APPLICATIONS}” may connect", err)
        self.assertIn("refused: not in the group", box.log())

    def test_a_group_is_named_as_the_system_names_it(self):
        with open("/etc/group") as file:
            name, _, number, _ = file.read().splitlines()[-1].split(":")
        box = self.box(f"[applications]\ngroup = {name}\n")
        self.assertEqual(self.browse(box, [int(number)])[0], 0)
        self.assertEqual(self.browse(box)[0], 1)

    def test_a_group_that_does_not_exist_lets_only_root_in(self):
        box = self.box("[applications]\ngroup = nobody-has-this\n")
        self.assertIn("there is no group “nobody-has-this”", box.log())
        self.assertEqual(box.run("browse", "--for", "1")[0], 0)
        self.assertEqual(self.browse(box)[0], 1)

    # Limits that users share

    def test_a_user_who_takes_all_connections_keeps_neither_root_nor_others_out(self):
        box = self.applications_box()

        def take_all(kept):
            for number in range(70):
                raw, why = greet(box, f"greedy {number}")
                if not raw:
                    return len(kept), why
                kept.append(raw)
            return len(kept), ""

        greedy = self.other(ANYBODY, [APPLICATIONS], take_all)
        count, why = greedy.result
        self.assertEqual(box.run("browse", "--for", "1")[0], 0)
        self.assertEqual(self.as_user(box, "browse", "--for", "1", groups=[APPLICATIONS], user=SOMEBODY)[0], 0)
        self.assertEqual(count, 38)
        self.assertEqual(why, f"64 connections are shared: user {ANYBODY} has 38; end one of these applications first")
        self.assertIn(f"user {ANYBODY} refused: {why}", box.log())
        greedy.end()
        wait("its places are free", lambda: self.browse(box, [APPLICATIONS])[0] == 0)

    def test_a_user_who_takes_all_services_and_sessions_leaves_some_to_root_and_to_others(self):
        box = self.applications_box()

        def take_all(kept, name="greedy"):
            counts, texts = [0, 0], ["", ""]
            for client in range(6):
                raw, why = greet(box, f"{name} {client}")
                kept.append(raw)
                for kind in range(2):
                    for number in range(16):
                        packet = (causeway.advertise(100 + number, f"type-{number}", {}) if kind == 0
                                  else causeway.open_session(200 + number, f"type-{number}", 0, 0))
                        code, text = raw.ask(packet)
                        if code == 0:
                            counts[kind] += 1
                        elif "are shared" in text:
                            texts[kind] = text
            return counts, texts

        greedy = self.other(ANYBODY, [APPLICATIONS], take_all)
        counts, texts = greedy.result
        for user, groups in ((SOMEBODY, [APPLICATIONS]), (0, [])):
            others = self.other(user, groups, lambda kept: take_all(kept, "other")[0]).result
            self.assertTrue(all(count >= 3 for count in others), (user, others, counts))
        self.assertEqual(counts, [10, 18])
        self.assertEqual(texts, [f"16 services are shared: user {ANYBODY} has 10; withdraw one of these services first",
                                 f"32 sessions are shared: user {ANYBODY} has 18; leave one of these sessions first"])

    def test_a_connection_that_says_no_hello_is_closed_after_5_s(self):
        box = self.applications_box()
        silent = Raw(box)
        begun = time.monotonic()
        self.assertEqual(silent.next(), (INVALID, "no hello within 5 s; send it first"))
        self.assertTrue(4.9 <= time.monotonic() - begun <= 8)
        # The time limit is only for the hello: a client may be silent after it.
        raw, _ = greet(box, "quiet")
        time.sleep(6)
        self.assertEqual(raw.ask(causeway.browse(2, "chat"))[0], 0)

    def test_clients_that_stop_in_the_middle_of_a_packet_do_not_hold_up_another_user(self):
        box = self.applications_box()

        def stop(kept):
            while len(kept) < 38:
                raw, why = greet(box, f"slow {len(kept)}")
                if not raw:
                    break
                raw.socket.sendall(struct.pack(">I", 66_000) + bytes(5_000))
                kept.append(raw)
            return len(kept)

        def say(kept):
            raw, _ = greet(box, "other")
            raw.ask(causeway.open_session(2, "chat", 0, 0))
            times = []
            for number in range(3, 8):
                begun = time.monotonic()
                assert raw.ask(causeway.send(number, 2, 0, [], bytes(64_000)))[0] == 0
                times.append(time.monotonic() - begun)
            return times

        self.assertEqual(self.other(ANYBODY, [APPLICATIONS], stop).result, 38)
        for user, groups in ((SOMEBODY, [APPLICATIONS]), (0, [])):
            times = self.other(user, groups, say).result
            self.assertLess(max(times), 2, (user, times))

    def test_a_user_who_opens_sessions_without_end_holds_up_no_other_user(self):
        box = self.applications_box()

        def open_all(kept):
            packets = b"".join(causeway.open_session(10 + number, "chat", 0, 0) + causeway.leave(50 + number, 10 + number, "")
                               for number in range(8))

            def again(raw):
                while True:
                    raw.socket.sendall(packets)
                    for _ in range(16):
                        raw.next()

            for number in range(30):
                raw, _ = greet(box, f"greedy {number}")
                kept.append(raw)
                threading.Thread(target=again, args=[raw], daemon=True).start()
            return len(kept)

        def ask(kept):
            raw, _ = greet(box, "other")
            times = []
            for number in range(2, 102, 2):
                begun = time.monotonic()
                assert raw.ask(causeway.browse(number, "chat"))[0] == 0
                assert raw.ask(causeway.close(number + 1, number))[0] == 0
                times.append(time.monotonic() - begun)
            begun = time.monotonic()
            assert raw.ask(causeway.open_session(500, "chat", 0, 0))[0] == 0
            return sorted(times)[25], time.monotonic() - begun

        self.assertEqual(self.other(ANYBODY, [APPLICATIONS], open_all).result, 30)
        for user, groups in ((SOMEBODY, [APPLICATIONS]), (0, [])):
            median, opened = self.other(user, groups, ask).result
            self.assertLess(median, 0.1, user)
            self.assertLess(opened, 1, user)

    def test_users_who_invite_for_as_long_as_they_may_keep_nobody_from_a_node(self):
        far = self.daemon("far")
        far.start()
        node = causeway.Node.connect("service", f"{far.directory}/run/api.sock")
        self.addCleanup(node.close)
        node.advertise("chat")
        box = self.applications_box(far)

        def invite(kept):
            raw, _ = greet(box, "inviter")
            kept.append(raw)
            raw.socket.sendall(causeway.browse(2, "chat"))
            while True:
                event = raw.event()
                if event[0] == SERVICES:
                    break
            reader = causeway.Reader(event[5:])
            reader.number(2)
            node = reader.bytes(16)
            reader.peer()
            reader.number(1)
            address = causeway.Address(node, reader.service()[0])
            codes = []
            for number in range(4):
                assert raw.ask(causeway.open_session(100 + number, "chat", 0, 0))[0] == 0
                codes.append(raw.ask(causeway.invite(200 + number, 100 + number, address, 4_294_967_295, b""))[0])
            return codes

        def invited(user, groups):
            codes = self.other(user, groups, invite).result
            # The pause keeps each user below the limit: a node accepts four invitations per second from another node.
            time.sleep(1)
            return codes

        first, second = invited(ANYBODY, [APPLICATIONS]), invited(SOMEBODY, [APPLICATIONS])
        third, root = invited(SOMEBODY + 1, [APPLICATIONS]), invited(0, [])
        self.assertEqual((first, second, third, root),
                         ([0, 0, 0, FULL], [0, FULL, FULL, FULL], [0, FULL, FULL, FULL], [0, 0, 0, 0]))

    def test_a_user_of_the_control_socket_keeps_neither_root_nor_others_out(self):
        box = self.box()

        def watch(kept):
            refusal = ""
            for _ in range(30):
                client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                client.settimeout(10)
                client.connect(f"{box.directory}/run/control.sock")
                try:
                    client.send(b"A")
                    packet = client.recv(70_000)
                except OSError:         # the daemon has refused the client, which can still read the reason
                    packet = client.recv(70_000)
                if packet[:1] == b"E":
                    refusal = packet[2:].decode()
                    break
                kept.append(client)
            return len(kept), refusal

        count, refusal = self.other(ANYBODY, [DAEMON], watch).result
        for words in (("status",), ("doctor",), ("log",)):
            code, out, err = self.as_user(box, *words, groups=[DAEMON], user=SOMEBODY)
            self.assertNotEqual(out, "", err)
            self.assertNotIn("clients", err)
        self.assertEqual(box.run("status")[0], 0)
        self.assertEqual((count, refusal), (11, f"20 clients are shared: user {ANYBODY} has 11; close one of these clients first"))

    def test_a_client_of_the_control_socket_that_asks_nothing_is_closed_after_5_s(self):
        box = self.box()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(20)
            client.connect(f"{box.directory}/run/control.sock")
            begun = time.monotonic()
            self.assertEqual(client.recv(300)[2:], b"no request within 5 s")
            self.assertTrue(4.9 <= time.monotonic() - begun <= 8)

    def test_a_user_who_captures_leaves_a_capture_to_another_one_and_to_root(self):
        box = self.box()

        def capture(kept):
            answers = []
            for _ in range(3):
                client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                client.settimeout(10)
                client.connect(f"{box.directory}/run/control.sock")
                client.send(b"K" + bytes(18))
                answers.append(client.recv(70_000)[:1].decode())
                kept.append(client)
            return answers

        first = self.other(ANYBODY, [DAEMON], capture).result
        second = self.other(SOMEBODY, [DAEMON], capture).result
        root = self.other(0, [], capture).result
        self.assertEqual((first, second, root), (["K", "T", "T"], ["K", "T", "T"], ["K", "T", "T"]))


if __name__ == "__main__":
    unittest.main()
