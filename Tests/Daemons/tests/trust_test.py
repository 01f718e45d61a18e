"""Trust in peers, and untrusted text in outputs, tested with the causeway binary.

Real daemons run on the loopback interface. An application on one of them sends hostile text."""
# seconds: 50
import os
import subprocess
import time
import unittest

from causeway import Node, Result
from bypass import Ended
from daemons import BINARY, DaemonsTest, wait
from member import Identity, Member
from stranger import ANSWER, CANCEL, DECLINED, STORED, Offer, answer_offer, leaf, name, record, wait_member

# The text contains escape sequences, a window title, a carriage return, direction marks, an invisible character, an
# 8-bit CSI in UTF-8, and DEL.
NASTY = "\x1b[2J\x1b]0;owned\x07\rgone\u202e\u2066\u200b\x9b31m\x7f"
# Invisible characters that are legal in names and in texts of transfers.
UNSEEN = "owned\u200b\u00ad\ufeff"
NASTY_NAME = "ev\u202eil\u200b"


def steering(text):
    """The characters of an output that are invisible or steer a terminal. An output for people must contain none of
    them."""
    invisible = {*range(0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
                 *range(0x2060, 0x2070), 0xFEFF, 0xFFFD} - {0x0A}
    return sorted({hex(ord(character)) for character in text if ord(character) in invisible})


class TrustTest(DaemonsTest):
    def begin(self, daemon, *words):
        """Start a command that keeps running. `end` closes its input, waits for its end, and returns its output."""
        process = subprocess.Popen(
            [BINARY, *words, "--config", daemon.config], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        return process.communicate(timeout=30)[0].decode("utf-8", "replace")

    # Untrusted text

    def test_no_text_of_a_stranger_steers_a_terminal(self):
        box = self.daemon("box", trust="policy = first-use").start()
        evil = self.daemon("evil", box, display=NASTY_NAME, extra="").start()
        wait("they are linked", lambda: evil.neighbours() == ["box"])
        evil_id = evil.id
        node = Node.connect("stranger", f"{evil.directory}/run/api.sock")
        self.addCleanup(node.close)
        shown = {}
        # Hostile text in a chat: control and invisible characters in its lines.
        chat = self.begin(box, "chat")
        session = node.open_session("chat", members_max=64)
        session.gather()
        node.advertise("chat", {"name": "x" + UNSEEN})
        wait_member(session)
        self.assertEqual(list(session.send(NASTY.encode(), timeout=20).values()), [Result.DELIVERED])
        time.sleep(0.5)
        shown["chat"] = self.end(chat)
        self.assertIn("]0;owned", shown["chat"])
        session.leave()
        # Hostile text in an answer: the box offers a file, and the stranger declines with a text. The first text is
        # invalid, the second one valid.
        path = os.path.join(self.root, "file")
        with open(path, "wb") as file:
            file.write(b"contents")
        invitations = node.advertise("files")
        for why, expected in ((NASTY, "violated the protocol"), (UNSEEN, "owned")):
            sending = self.begin(box, "send", path, evil_id)
            session = node.open_session("files")
            answer_offer(invitations, session, record(ANSWER, bytes([DECLINED]), name(why)))
            shown["send " + expected] = self.end(sending)
            self.assertIn(expected, shown["send " + expected])
            session.leave()
        invitations.close()
        # Hostile text in offers: the stranger offers files under hostile names, and cancels one offer with a hostile
        # explanation.
        into = self.path("in")
        os.makedirs(into)
        receiving = self.begin(box, "receive", into, "--from", evil_id)
        with self.assertRaises(AssertionError):
            Offer(node, "files", NASTY, [NASTY], 100).records.next(ANSWER)
        given_up = Offer(node, "files", "a" + UNSEEN, ["a" + UNSEEN], 100)
        given_up.records.next(ANSWER)
        given_up.send(CANCEL, bytes([0]), name(UNSEEN))
        self.assertEqual(Offer(node, "files", "b" + UNSEEN, ["b" + UNSEEN], 3).send_file(b"abc", leaf(b"abc")), STORED)
        time.sleep(0.5)
        receiving.terminate()
        shown["receive"] = self.end(receiving)
        self.assertIn("cancelled by its sender", shown["receive"])
        self.assertIn("/bowned", shown["receive"])
        for words in (
            ["status"], ["status", "--json"], ["peers"], ["log"], ["browse", "--for", "1"], ["browse", "--json", "--for", "1"],
            ["peer", "verify", evil_id], ["identity", "trust", evil_id, "--name", NASTY_NAME], ["identity", "show"],
            ["send", "/nonexistent" + NASTY, evil_id], ["send", path, NASTY, "--wait", "1"],
            ["identity", "revoke", NASTY_NAME + "x"], ["browse", "--for", NASTY], [NASTY],
            ["identity", "import", "/none" + NASTY], ["status"],
        ):
            code, out, err = box.run(*words)
            shown[" ".join(words)] = out + err
        self.assertIn("ev", shown["peers"])
        self.assertIn("name=x", shown["browse --for 1"])
        for what, text in shown.items():
            self.assertEqual(steering(text), [], f"{what}: {text!r}")

    def test_what_the_daemon_tells_on_its_standard_error_steers_no_terminal(self):
        box = self.daemon("box", trust="policy = first-use")
        log = os.path.join(self.root, "stderr")
        evil = self.daemon("evil", box, display=NASTY_NAME)
        with open(log, "wb") as file:
            box.process = subprocess.Popen([BINARY, "run", "--config", box.config], stderr=file)
        wait("the box answers", lambda: box.run("status")[0] == 0)
        evil.start()
        wait("evil is linked", lambda: box.neighbours() != [])
        evil.stop()
        evil.identity("new", "--replace")
        evil.start()
        wait("the alarm is told", lambda: "was seen" in open(log, encoding="utf-8", errors="replace").read())
        with open(log, encoding="utf-8", errors="replace") as file:
            self.assertEqual(steering(file.read()), [])
        for words in (["identity", "alarms"], ["status"], ["status", "--json"], ["log"]):
            self.assertEqual(steering("".join(box.run(*words)[1:])), [], words)

    def test_a_box_is_not_called_like_an_id(self):
        for name in ("2b75e26e", "00112233445566778899aabbccddeeff"):
            box = self.daemon(name, display=name)
            code, out, err = box.run("run")
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn("would look like an id", err)

    # Without sealing

    def test_where_nobody_seals_status_and_verify_say_so(self):
        box = self.daemon("box", extra="[peer]\nencryption = none").start()
        bob = self.daemon("bob", box, extra="[peer]\nencryption = optional").start()
        wait("bob is there", lambda: "bob" in box.run("peers")[1])
        self.assertIn("encryption none", box.run("status")[1])
        self.assertEqual([peer["in_clear"] for peer in box.status["peers"]], [True])
        for daemon, name, other in ((box, "bob", bob), (bob, "box", box)):
            self.assertIn(f"any node in the mesh can read and forge their messages: {name} ({other.id[:8]})",
                          " ".join(daemon.run("peers")[1].split()))
            code, out, err = daemon.run("peer", "verify", name)
            self.assertEqual(code, 0)
            self.assertIn("neither end encrypts", err)

    def test_where_both_seal_nothing_is_said(self):
        box = self.daemon("box").start()
        self.daemon("bob", box).start()
        wait("bob is there", lambda: "bob" in box.run("peers")[1])
        self.assertNotIn("can read and forge", box.run("status")[1])
        self.assertEqual(box.run("peer", "verify", "bob")[2], "")

    # Pins and alarms

    def test_only_who_lives_is_pinned(self):
        box = self.daemon("box").start()
        alice = self.daemon("alice", box, trust="policy = first-use").start()
        bob = self.daemon("bob", box).start()
        wait("alice sees bob", lambda: "bob" in alice.run("peers")[1])
        bob.stop()
        bob.identity("new", "--replace")
        bob.start()
        wait("alice sees the new bob", lambda: bob.id in alice.run("status", "--json")[1])
        alice.stop()
        alice.start()
        wait("alice is back", lambda: bob.id in alice.run("status", "--json")[1])
        self.assertEqual(alice.status["box"]["alarm"], "")
        # Traffic in a session proves bob's key, so alice's box pins the key.
        reading = self.begin(bob, "chat", "--for", "20")
        code, _, err = alice.run("chat", "--with", bob.id, "--wait", "15", input="hello\n")
        self.assertEqual(code, 0, err)
        self.assertNotIn("alarm", err)
        self.assertTrue(any(line == b"<alice> hello\n" for line in reading.stdout), "bob does not have the line")
        wait("bob is pinned", lambda: f"pinned       {bob.id}  bob" in alice.identity("show"))

    def test_a_name_that_looks_like_a_pinned_one_is_refused(self):
        box = self.daemon("box", trust="policy = first-use").start()
        bob = self.daemon("bob", box).start()
        wait("bob is linked", lambda: box.neighbours() == ["bob"])
        false = self.daemon("false", box, display="b\u043eb\u200b").start()
        wait("the alarm is there", lambda: box.status["box"]["alarms"] != [])
        alarm = box.status["box"]["alarms"][0]
        self.assertEqual((alarm["name"], alarm["pinned"], alarm["offered"]), ("bob", bob.id, false.id))
        self.assertEqual(box.neighbours(), ["bob"])
        self.assertIn("which looks like it", box.run("identity", "alarms")[1])

    def test_alarms_are_listed_dismissed_kept_and_accepted(self):
        box = self.daemon("box", trust="policy = first-use").start()
        names = ("bob", "carol")
        first = {name: self.daemon(name, box).start() for name in names}
        wait("both are linked", lambda: box.neighbours() == ["bob", "carol"])
        others = {name: self.daemon(name + "2", box, display=name).start() for name in names}
        wait("both alarms are there", lambda: len(box.status["box"]["alarms"]) == 2)
        listed = box.run("identity", "alarms")[1]
        for name in names:
            self.assertIn(f"“{name}” is {first[name].id}, pinned", listed)
            self.assertIn(f"causeway identity accept {others[name].id}", listed)
        self.assertNotIn("untrust", listed)
        # The listing of the alarms suggests three commands, all of which must work.
        bob2, carol2 = others["bob"].id, others["carol"].id
        self.assertIn("alarm ended", box.identity("keep", bob2[:8]))
        self.assertEqual([alarm["offered"] for alarm in box.status["box"]["alarms"]], [carol2])
        self.assertIn("1 alarm dismissed", box.identity("dismiss"))
        self.assertIn("no such alarm", self.refused(box, "identity", "dismiss"))
        others["carol"].stop()
        others["carol"].start()
        wait("the next try raises it again", lambda: [a["offered"] for a in box.status["box"]["alarms"]] == [carol2])
        self.assertIn(f"{carol2} is trusted as “carol” instead of {first['carol'].id}", box.identity("accept", carol2))
        self.assertEqual(box.status["box"]["alarms"], [])
        self.assertIn(f"pinned       {first['bob'].id}  bob", box.identity("show"))
        others["bob"].stop()
        others["bob"].start()
        time.sleep(2)
        self.assertEqual(box.status["box"]["alarms"], [])

    def test_under_policy_open_a_pin_of_first_use_refuses_nobody(self):
        box = self.daemon("box", trust="policy = first-use").start()
        bob = self.daemon("bob", box).start()
        wait("bob is pinned", lambda: f"{bob.id}  bob" in box.identity("show"))
        box.stop()
        box.trust = "policy = open"
        box.write()
        box.start()
        bob.stop()
        bob.identity("new", "--replace")
        bob.start()
        wait("the new key is linked", lambda: box.neighbours() == ["bob"])
        self.assertIn("1 pins unverified", box.status["box"]["trust"])
        self.assertEqual((box.status["box"]["alarms"], box.status["box"]["refused_strangers"]), ([], []))
        # The operator's pin of the name applies at once.
        box.identity("trust", "1" * 32, "--name", "bob")
        wait("bob is refused", lambda: box.neighbours() == [])
        self.assertIn("another key is pinned under its name", " ".join(box.run("explain", bob.id)[1].split()))

    # Strangers with many keys

    def come(self, box, name, address, identity=None, seconds=0.5):
        """Link with the box under this name and key. Returns whether the link is still up after `seconds`."""
        try:
            member = Member(box.port, address, identity, name=name)
            self.addCleanup(member.stream.close)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                member.serve(0.02)
            return True
        except (Ended, OSError):
            return False

    def pinned(self, box):
        return int(box.status["box"]["trust"].split(", ")[1].split()[0])

    def test_a_flood_of_keys_fills_no_table_of_pins_and_locks_nobody_out(self):
        box = self.daemon("box", trust="policy = first-use").start()
        begun = time.monotonic()
        for number in range(150):
            self.come(box, f"flood{number}", f"127.9.0.{number + 1}", seconds=0.05)
        spent = time.monotonic() - begun
        self.assertLessEqual(self.pinned(box), 32 + spent / 120 + 1)
        self.assertEqual([bearer for bearer in box.status["bearers"] if bearer["name"] == "pins"], [])
        dora = self.daemon("dora", box).start()
        wait("a newcomer is linked", lambda: "dora" in box.neighbours(), 20)
        self.assertIn("is trusted as “dora”", box.identity("trust", dora.id, "--name", "dora"))
        self.assertIn(f"pinned       {dora.id}  dora  (by the operator)", box.identity("show"))
        self.assertIn("linked without a pin", box.log("warning"))

    def test_a_full_table_warns_and_gives_way_to_the_operator(self):
        box = self.daemon("box", trust="policy = first-use")
        box.identity("new")
        for number in range(127):
            box.identity("trust", f"{number + 1:032x}", "--name", f"known{number}")
        box.start()
        self.assertNotIn("pins", [bearer["name"] for bearer in box.status["bearers"]])
        self.assertTrue(self.come(box, "stranger", "127.9.0.1"))
        wait("the operator is warned", lambda: "pins" in [bearer["name"] for bearer in box.status["bearers"]], 20)
        self.assertIn("half of the 256 pins are in use", " ".join(box.run("status")[1].split()))
        self.assertIn("half of the 256 pins", box.log("warning"))
        self.assertIn("half of the 256 pins", box.run("doctor")[1])
        box.stop()
        for number in range(127, 255):
            box.identity("trust", f"{number + 1:032x}", "--name", f"known{number}")
        told = box.identity("trust", f"{900:032x}", "--name", "late")
        self.assertIn("the unverified pin of", told)
        self.assertIn("as “stranger” was evicted", told)
        self.assertIn("you have pinned 256 keys", self.refused(box, "identity", "trust", f"{901:032x}", "--name", "later"))

    def test_alarms_under_names_of_a_stranger_hide_none(self):
        box = self.daemon("box", trust="policy = first-use").start()
        bob = self.daemon("bob", box).start()
        wait("bob is linked", lambda: "bob" in box.neighbours())
        for network in (0, 1):
            for number in range(20):
                self.come(box, f"own{number}", f"127.9.{network}.{number + 1}", seconds=0.1)
        false = Identity()
        self.assertFalse(self.come(box, "bob", "127.9.2.1", false))
        pinned = {alarm["name"]: alarm for alarm in box.status["box"]["alarms"]}
        self.assertGreaterEqual(len(pinned), 18)
        self.assertEqual((pinned["bob"]["pinned"], pinned["bob"]["offered"]), (bob.id, false.id.hex()))
        self.assertIn(f"{false.id.hex()} was seen under that name", box.log("error"))

    # Commands

    def test_the_commands_take_what_peers_shows_and_say_whom_they_mean(self):
        box = self.daemon("box").start()
        bob = self.daemon("bob", box).start()
        wait("bob is linked", lambda: box.neighbours() == ["bob"])
        bob_id = bob.id
        for word in ("bob", bob_id[:8]):
            self.assertRegex(self.refused(box, "identity", "trust", word),
                             f"“{word}” is {bob_id}, seen as “bob” .linked over loopback, 127.0.0.1:.*give the whole id")
        self.assertIn(f"{bob_id} is trusted as “bob”", box.identity("trust", bob_id, "--name", "bob"))
        self.assertIn("already", self.refused(box, "identity", "trust", bob_id, "--name", "bob"))
        self.assertIn(f"forgotten: {bob_id} as “bob”", box.identity("untrust", bob_id[:8]))
        self.assertIn("no such pin", self.refused(box, "identity", "untrust", "bob"))
        self.assertIn("no such pin", self.refused(box, "identity", "untrust", bob_id))
        self.assertIn("no known name or id matches", self.refused(box, "identity", "trust", "nobody"))
        twin = self.daemon("twin", box, display="bob").start()
        wait("there are two", lambda: box.neighbours() == ["bob", "bob"])
        ambiguous = self.refused(box, "identity", "revoke", "bob")
        self.assertIn(bob_id, ambiguous)
        self.assertIn(twin.id, ambiguous)
        self.assertIn(f"is {bob_id}, and a revocation cannot be undone", self.refused(box, "identity", "revoke", bob_id[:8]))
        self.assertIn(f"{bob_id} is revoked", box.identity("revoke", bob_id[:8], "--yes"))
        self.assertIn("already revoked", self.refused(box, "identity", "revoke", bob_id))
        wait("bob is gone", lambda: box.neighbours() == ["bob"])

    def test_a_name_that_gets_another_key_says_whose_it_was(self):
        box = self.daemon("box").start()
        first, second = "1" * 32, "2" * 32
        self.assertEqual(box.identity("trust", first, "--name", "bob"), f"{first} is trusted as “bob”\n")
        self.assertEqual(box.identity("trust", second, "--name", "Bob"), f"{second} is trusted as “Bob” instead of {first}\n")
        self.assertNotIn("instead", box.identity("trust", second, "--name", "robert"))

    def test_refused_strangers_are_listed_so_that_they_can_be_let_in(self):
        os.makedirs(os.path.join(self.root, "anchors"))
        box = self.daemon("box", trust=f"policy = ca\nanchors = {self.root}/anchors").start()
        stranger = self.daemon("stranger", box).start()
        wait("the stranger is listed", lambda: box.status["box"]["refused_strangers"] != [])
        entry = box.status["box"]["refused_strangers"][0]
        self.assertEqual(entry["id"], stranger.id)
        self.assertIn("no authority in the anchors directory", entry["reason"])
        self.assertIn(stranger.id, box.run("status")[1])
        self.assertIn(f"is {stranger.id}, seen without a name (refused: no authority in the anchors directory",
                      self.refused(box, "identity", "trust", stranger.id[:8]))
        box.identity("trust", stranger.id, "--name", "stranger")
        wait("the stranger is linked", lambda: box.neighbours() == ["stranger"], 40)

    # The key

    def test_a_box_whose_key_is_gone_does_not_become_another_one(self):
        box = self.daemon("box").start()
        box.stop()
        os.unlink(box.state + "/node.key")
        code, out, err = box.run("run")
        self.assertEqual((code, err.count("\n")), (1, 1), err)
        self.assertIn("missing although", err)
        self.assertFalse(os.path.exists(box.state + "/node.key"))
        box.identity("new")
        box.start()

    def test_what_is_no_identity_is_named_in_one_line(self):
        box = self.daemon("box")
        subprocess.run(["sh", "-c", f"cd {self.root} && openssl genpkey -algorithm ed25519 -out ed.key && openssl genpkey "
                        "-algorithm EC -pkeyopt ec_paramgen_curve:P-256 -outform DER -out key.der"], check=True, capture_output=True)
        for file, expected in ((".", "not a regular file"), ("ed.key", "not an ECDSA P-256 key"), ("key.der", "openssl pkey -inform DER")):
            self.assertIn(expected, self.refused(box, "identity", "import", os.path.join(self.root, file)))
        self.assertFalse(os.path.exists(box.state + "/node.key"))


if __name__ == "__main__":
    unittest.main()
