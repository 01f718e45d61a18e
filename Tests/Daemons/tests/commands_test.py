"""The commands `browse`, `accept` and `pipe` with real daemons."""
# seconds: 40
import hashlib
import json
import os
import signal
import subprocess
import unittest

from people import PeopleTest

from causeway import Outcome
from daemons import BINARY, wait


class CommandsTest(PeopleTest):
    # browse

    def test_browse_tells_each_change_in_a_line(self):
        browse = self.command(self.a, "browse", "story")
        service = self.application(self.b).advertise("story", {"room": "4"})
        self.assertEqual(
            browse.wait("^found"), f"found bob ({self.b_id[:8]}) story, 1 hop, not verified, room=4")
        service.update({"room": "5"})
        browse.wait("^changed bob .* room=5$")
        service.close()
        browse.wait("^lost bob ")
        browse.process.send_signal(signal.SIGINT)
        self.assertEqual(browse.end(), 0)

    def test_browse_shows_all_types_and_ends_in_time(self):
        application = self.application(self.b)
        for service in ("chat", "photos"):
            application.advertise(service)
        code, out, err = self.a.run("browse", "--for", "2")
        self.assertEqual((code, err), (0, ""))
        self.assertLessEqual({"chat,", "photos,"}, {line.split()[3] for line in out.splitlines()})

    def test_browse_in_json_is_one_object_a_line(self):
        self.application(self.b, 'x"\\').advertise("story", {"name": 'a"\\\u2028b', "x": "ü"})
        _, out, _ = self.a.run("browse", "story", "--json", "--for", "2")
        lines = [json.loads(line) for line in out.splitlines()]
        found = next(line for line in lines if line["event"] == "found")
        endpoint = found.pop("endpoint")
        self.assertRegex(endpoint, "^[0-9a-f]{8}$")
        self.assertEqual(found, {
            "event": "found", "name": "bob", "id": self.b_id, "type": "story", "hops": 1, "verified": False,
            "info": ['name=a"\\\u2028b', "x=ü"]})
        self.assertIn({"event": "all_told"}, lines)

    def test_browse_on_a_terminal_is_a_table_that_is_kept(self):
        terminal = self.terminal(self.a, "browse", "story", columns=44)
        terminal.wait_line("^No services yet.$")
        service = self.application(self.b).advertise("story", {"long": "x" * 100})
        line = terminal.wait_line("^bob ")
        self.assertEqual(line, f"bob   {self.b_id[:8]}  story  1     no        long…")
        service.close()
        terminal.wait("bob is gone", lambda: not any(line.startswith("bob") for line in terminal.screen))
        self.assertEqual(sum(line.startswith("NAME") for line in terminal.screen), 1)
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)
        self.assertTrue(terminal.is_restored())

    def test_browse_ends_when_nobody_reads_it(self):
        reader, writer = os.pipe()
        browse = self.command(self.a, "browse", output=writer)
        os.close(writer)
        os.close(reader)
        self.assertEqual(browse.end(), 1)

    # accept

    def invited(self, *words, service, terminal=False):
        """Run `accept` on alice's box and invite it from an application on bob's box. Returns the command, the session
        and the invitation. Each call needs its own service, because an ended application is found until its box has
        withdrawn its service."""
        accept = (self.terminal if terminal else self.command)(self.a, "accept", service, *words)
        node = self.application(self.b)
        session = node.open_session(service)
        return accept, session, session.invite(self.address(node, service), b"join us")

    def test_accept_declines_whose_key_is_not_pinned(self):
        accept, _, invitation = self.invited(service="door")
        self.assertEqual(invitation.wait(20), (Outcome.DECLINED, "not accepted here"))
        accept.wait("“bob” was not accepted")
        accept.process.send_signal(signal.SIGTERM)
        self.assertEqual(accept.end(), 0)

    def test_accept_takes_a_peer_by_its_whole_id_and_shows_its_messages(self):
        accept, session, invitation = self.invited("--from", self.b_id, service="door-id")
        self.assertEqual(invitation.wait(20)[0], Outcome.CONNECTED)
        accept.wait("bob is here")
        session.send(b"hello", timeout=20)
        accept.wait("^<bob> hello$")

    def test_the_beginning_of_an_id_lets_in_no_stranger(self):
        _, _, invitation = self.invited("--from", self.b_id[:8], "--from", "bob", service="door-short")
        self.assertEqual(invitation.wait(20)[0], Outcome.DECLINED)

    def test_accept_takes_peers_whose_keys_are_pinned(self):
        self.a.identity("trust", self.b_id, "--name", "bob")
        try:
            for service, *words in (("door-pinned",), ("door-named", "--from", "bob")):
                accept, session, invitation = self.invited(*words, service=service)
                self.assertEqual(invitation.wait(20)[0], Outcome.CONNECTED)
                session.leave()
                accept.close()
        finally:
            self.a.identity("untrust", self.b_id)

    def test_accept_asks_on_a_terminal(self):
        for service, key, outcome in (("door-ask", "y\r", Outcome.CONNECTED), ("door-no", "\r", Outcome.DECLINED)):
            accept, session, invitation = self.invited(service=service, terminal=True)
            accept.wait_line(f"^\\(NOT verified, [0-9a-f]{{8}}\\) “bob” invites to “{service}”")
            accept.answer(key)
            self.assertEqual(invitation.wait(20)[0], outcome)
            session.leave()
            accept.close()

    # pipe

    def pipe(self, service, data=None):
        with open(self.path(service), "wb") as output:
            listener = self.command(self.b, "pipe", "--listen", service, "--from", self.a_id, output=output)
        sender = self.command(self.a, "pipe", "bob", service)
        if data is not None:
            sender.process.stdin.write(data)
        return sender, listener

    def path(self, name):
        return os.path.join(self.root.name, "output-" + name)

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_a_pipe_brings_every_byte_and_both_ends_know_it(self):
        data = os.urandom(3_000_000)
        sender, listener = self.pipe("whole", data)
        self.assertEqual((sender.end(60), listener.end(60)), (0, 0), (sender.heard, listener.heard))
        self.assertEqual(hashlib.sha256(self.content("whole")).digest(), hashlib.sha256(data).digest())

    def test_a_listener_that_leaves_at_once_does_not_undo_the_end(self):
        # Bytes of another stream fill the way back to alice, and the acknowledgement of the stream's end waits behind
        # them. The goodbye of the listener does not wait for bytes of streams, so it overtakes that acknowledgement.
        with open(os.devnull, "wb") as nothing, open("/dev/zero", "rb") as zeros:
            reader = self.command(self.a, "pipe", "--listen", "flood", "--from", self.b_id, output=nothing)
            writer = self.command(self.b, "pipe", "alice", "flood", input=zeros)
            wait("the other stream moves", lambda: self.bytes_read(writer) > 1_000_000)
            for number in range(8):
                data = os.urandom(number * 10_000)
                sender, listener = self.pipe(f"beside-{number}", data)
                self.assertEqual((sender.end(60), listener.end(60)), (0, 0), (number, sender.heard, listener.heard))
                self.assertEqual(self.content(f"beside-{number}"), data)
            self.assertEqual((reader.process.poll(), writer.process.poll()), (None, None))

    @staticmethod
    def bytes_read(command):
        with open(f"/proc/{command.process.pid}/io") as counters:
            return int(counters.readline().split()[1])

    def test_an_empty_pipe_is_whole(self):
        sender, listener = self.pipe("empty", b"")
        self.assertEqual((sender.end(), listener.end()), (0, 0), (sender.heard, listener.heard))
        self.assertEqual(self.content("empty"), b"")

    def test_a_cut_is_told_apart_from_the_end(self):
        sender, listener = self.pipe("cut", b"beginning")
        sender.process.stdin.flush()
        wait("the beginning is there", lambda: self.content("cut") == b"beginning")
        sender.process.send_signal(signal.SIGINT)
        self.assertEqual((sender.process.wait(20), listener.end()), (5, 5), listener.heard)
        self.assertIn("the peer cut the stream", listener.heard[-1])

    def test_a_sender_that_is_killed_cuts_its_stream(self):
        sender, listener = self.pipe("killed", b"beginning")
        sender.process.stdin.flush()
        wait("the beginning is there", lambda: self.content("killed") == b"beginning")
        sender.process.kill()
        self.assertEqual(listener.end(), 5, listener.heard)

    def test_a_reader_that_has_seen_enough_is_told_to_the_writer(self):
        reader = subprocess.Popen(
            f"{BINARY} pipe --listen head --from {self.a_id} --config {self.b.config} | head -c 5", shell=True,
            stdout=subprocess.PIPE)
        self.addCleanup(reader.stdout.close)
        self.addCleanup(reader.wait)
        with open("/dev/zero", "rb") as zeros:
            sender = self.command(self.a, "pipe", "bob", "head", input=zeros)
        self.assertEqual(sender.end(30), 5, sender.heard)
        self.assertEqual(reader.stdout.read(), bytes(5))

    def test_a_pipe_that_is_not_accepted_says_so(self):
        listener = self.command(self.b, "pipe", "--listen", "refused")
        sender = self.command(self.a, "pipe", "bob", "refused")
        self.assertEqual(sender.end(), 6, sender.heard)
        listener.wait("“alice” was not accepted")

    def test_a_pipe_to_nobody_ends_with_the_wait(self):
        code, _, err = self.a.run("pipe", "bob", "absent", "--wait", "1", input="x")
        self.assertEqual(code, 4)
        self.assertIn("“bob” did not appear in time", err)


if __name__ == "__main__":
    unittest.main()
