"""`causeway explain` and `causeway sessions`.

Real daemons run on the loopback interface with one fault between them, which `causeway explain` must name."""
# seconds: 35
import json
import os
import shutil
import signal
import socket
import subprocess
import unittest

from causeway import Node
from daemons import BINARY, DaemonsTest, wait

CAN, CANNOT, UNKNOWN = 0, 1, 4


class ExplainTest(DaemonsTest):
    def explain(self, daemon, *names):
        """Run `explain` twice: for people, which must fit 80 columns, and with JSON. Returns the exit status, the JSON
        answer and the text. A change between the two runs appears in the JSON answer only."""
        _, out, err = daemon.run("explain", *names)
        self.assertEqual([line for line in out.split("\n") if len(line) > 80], [], out)
        code, answer, _ = daemon.run("explain", *names, "--json")
        return code, json.loads(answer) if answer else {}, out + err

    def cannot(self, daemon, names, cause, remedy):
        """Wait until `explain` reports that the nodes cannot communicate, with this cause and this remedy."""
        seen = []

        def is_said():
            code, answer, text = self.explain(daemon, *names)
            seen[:] = [text]
            if not answer:
                return False
            return (code == CANNOT and cause in answer["verdict"] and remedy in answer["remedy"]
                    and not answer["can_talk"] and answer["route"] == [])

        try:
            wait("it is said", is_said, 30)
        except AssertionError:
            raise AssertionError(f"not said: “{cause}” and “{remedy}”, but:\n{seen[0]}") from None
        code, text = daemon.run("explain", *names)[:2]
        self.assertEqual(code, CANNOT)
        return text

    def meet(self, daemon, name):
        """Wait until a neighbour is also a peer. Its name comes with an advertisement, which arrives after the link is
        up."""
        wait("they are linked", lambda: daemon.neighbours() == [name])
        wait("they can talk", lambda: self.explain(daemon, name)[0] == CAN)

    def linked(self, *options, **others):
        box = self.daemon("box", *options, **others).start()
        bob = self.daemon("bob", box).start()
        self.meet(box, "bob")
        return box, bob

    # Nodes that can talk

    def test_neighbours_can_talk_and_the_link_is_told(self):
        box, bob = self.linked()
        code, answer, text = self.explain(box, "BOB")
        self.assertEqual((code, box.run("explain", "bob")[0]), (CAN, CAN))
        self.assertIn("they can talk: 1 link: loopback to bob; frames of up to 16640 bytes", text.replace("\n", " "))
        self.assertEqual([hop["id"] for hop in answer["route"]], [bob.id])
        self.assertIn("ip", [finding["subject"] for finding in answer["findings"] if "link over loopback up" in finding["text"]])
        self.assertIn(("encryption", "good"), [(finding["subject"], finding["state"]) for finding in answer["findings"]])

    def test_a_way_over_others_is_told_link_by_link_and_by_any_box(self):
        middle = self.daemon("middle").start()
        left, right = (self.daemon(name, middle).start() for name in ("left", "right"))
        wait("right is seen", lambda: "right" in left.run("peers")[1])
        for box, names in ((left, ("right",)), (left, ("right", "left")), (middle, ("left", "right"))):
            wait("they can talk", lambda: self.explain(box, *names)[0] == CAN)
            answer = self.explain(box, *names)[1]
            self.assertEqual(len(answer["route"]), 2, answer)
            self.assertEqual(answer["route"][0]["id"], middle.id)
            self.assertEqual(answer["outcome"], "unknown" if box is middle else "untried")
        self.assertIn("the weakest is", answer["verdict"])

    # Names

    def test_whoever_is_unknown_or_misspelt_is_exit_code_4(self):
        box, bob = self.linked()
        for word, said in (("bobb", "did you mean “bob”?"), ("nobody-at-all", "is unknown here"), ("0" * 32, "is unknown here")):
            code, out, err = box.run("explain", word)
            self.assertEqual((code, out, err.count("\n")), (UNKNOWN, "", 1), err)
            self.assertIn(said, err)
        self.daemon("twin", box, display="bob").start()
        wait("there are two", lambda: box.neighbours() == ["bob", "bob"])
        code, _, err = box.run("explain", "bob")
        self.assertEqual(code, UNKNOWN)
        self.assertIn("several peers are called “bob”", err)
        self.assertEqual(self.explain(box, bob.id[:6])[0], CAN)
        self.assertEqual(box.run("explain")[0], 2)
        self.cannot(box, ("box",), "both are the same node", "name two nodes")

    # Nodes that cannot talk: a node out of reach

    def test_a_pinned_node_that_was_never_heard_is_not_in_reach(self):
        box, bob = self.daemon("box").start(), self.daemon("bob")
        bob.identity("new")
        box.identity("trust", bob.id, "--name", "bob")
        text = self.cannot(box, ("bob",), "bob is out of reach; not found over ip; switched off here: wifi-direct, bluetooth-le",
                           "enable a bearer here that it uses: [wifi-direct], [bluetooth] enabled = yes")
        self.assertIn("switched off here: [bluetooth] enabled = no", text)

    def test_where_every_bearer_is_off_that_is_the_cause(self):
        box, bob = self.daemon("box"), self.daemon("bob")
        with open(box.config) as file:
            text = file.read()
        with open(box.config, "w") as file:
            file.write(text.replace("[ip]\n", "[ip]\nenabled = no\n"))
        box.start()
        bob.identity("new")
        box.identity("trust", bob.id, "--name", "bob")
        self.cannot(box, ("bob",), "every bearer is switched off here", "[ip], [wifi-direct], [bluetooth] enabled = yes")

    def test_a_port_at_which_nobody_listens(self):
        bob = self.daemon("bob")
        box = self.daemon("box", bob).start()
        bob.start()
        self.meet(box, "bob")
        os.kill(bob.process.pid, signal.SIGKILL)
        bob.process.wait()
        text = self.cannot(box, ("bob",), "the dial failed: Connection refused", "check that it runs at this address: “causeway status” on bob")
        self.assertIn(f"127.0.0.1:{bob.port}", text)
        self.assertIn("the next dial is in", " ".join(text.split()))

    def test_an_address_that_never_answered_is_asked_about_by_itself(self):
        bob = self.daemon("bob")
        box = self.daemon("box", bob).start()
        self.cannot(box, (f"127.0.0.1:{bob.port}",), "the dial failed: Connection refused", "check that it runs")

    def test_who_stopped_said_goodbye(self):
        box, bob = self.linked()
        bob.stop()
        self.cannot(box, ("bob",), "its daemon has stopped", "on bob: systemctl start causeway")

    def test_a_peer_that_stands_still_does_not_finish_the_handshake(self):
        bob = self.daemon("bob")
        box = self.daemon("box", bob).start()
        bob.start()
        self.meet(box, "bob")
        os.kill(bob.process.pid, signal.SIGSTOP)
        try:
            self.cannot(box, ("bob",), "it accepts connections, but does not finish the TLS handshake",
                        "on bob: systemctl restart causeway")
        finally:
            os.kill(bob.process.pid, signal.SIGCONT)
        wait("they can talk again", lambda: self.explain(box, "bob")[0] == CAN, 40)

    # Nodes that cannot talk: trust

    def test_a_certificate_of_no_authority_of_ours_is_refused_and_its_key_can_be_trusted(self):
        os.makedirs(self.path("anchors"))
        box = self.daemon("box", trust=f"policy = ca\nanchors = {self.path('anchors')}").start()
        bob = self.daemon("bob", box).start()
        bob_id = bob.id
        wait("it was refused", lambda: box.status["box"]["refused_strangers"] != [])
        self.cannot(box, (bob_id,), "no authority in the anchors directory issued its certificate", f"causeway identity trust {bob_id}")
        # The refused node knows the refusal, too, and names the command for the refusing node.
        self.cannot(bob, (box.id[:8],), "it refuses this box: none of its authorities issued this box's certificate",
                    f"causeway identity trust {bob_id}")
        box.identity("trust", bob_id, "--name", "bob")
        wait("the remedy helps", lambda: self.explain(box, "bob")[0] == CAN, 60)

    def test_a_refusal_two_links_away_is_told_by_both_ends_with_the_one_that_refuses(self):
        os.makedirs(self.path("anchors"))
        middle = self.daemon("middle").start()
        near = self.daemon("near", middle, trust=f"policy = ca\nanchors = {self.path('anchors')}")
        near.identity("new")
        near.identity("trust", middle.id, "--name", "middle")
        near.start()
        far = self.daemon("far", middle).start()
        wait("they see each other", lambda: "far" in near.run("peers")[1] and "near" in far.run("peers")[1], 60)
        self.assertNotEqual(near.run("ping", far.id, "--count", "1")[0], 0)
        self.cannot(near, (far.id,), "far is refused here: no authority in the anchors directory issued its certificate",
                    f"causeway identity trust {far.id}")
        self.cannot(far, (near.id,), "near refuses this box", f"on near: causeway identity trust {far.id}")
        # The box between the two nodes does not know the refusal. This box names the node that refuses, and the command
        # to run there.
        code, answer, text = self.explain(middle, near.id, far.id)
        self.assertEqual((code, answer["outcome"]), (CAN, "unknown"))
        self.assertNotIn("they can talk", text)
        self.assertIn("there is a route; only the two know whether they accept each other", text.replace("\n", " "))
        self.assertIn("on near: causeway explain far", [finding["remedy"] for finding in answer["findings"]])

    def test_a_refusal_before_any_session_is_not_taken_for_a_session(self):
        middle = self.daemon("middle").start()
        alice, bob = (self.daemon(name, middle).start() for name in ("alice", "bob"))
        wait("they see each other", lambda: "bob" in alice.run("peers")[1] and "alice" in bob.run("peers")[1])
        bob_id = bob.id
        bob.identity("revoke", alice.id)
        code, answer, text = self.explain(alice, bob_id)
        self.assertEqual((code, answer["outcome"], answer["remedy"]), (CAN, "untried", f"causeway ping {bob_id}"))
        self.assertIn("not tried yet", text)
        for said in ("they can talk", "sealed end to end"):
            self.assertNotIn(said, text.replace("\n", " "))
        self.cannot(bob, (alice.id,), "its key is revoked", "on alice: causeway identity new --replace")
        self.assertEqual(alice.run("ping", bob_id, "--count", "1")[0], 4)
        code, answer, text = self.explain(alice, bob_id)
        self.assertEqual(answer["outcome"], "unanswered", text)
        self.assertNotIn("they can talk", text)
        self.cannot(alice, (bob_id,), "bob does not answer the end-to-end handshake", f"on bob: causeway explain {alice.id}")

    def test_a_session_shows_that_two_accept_each_other(self):
        middle = self.daemon("middle").start()
        alice, bob = (self.daemon(name, middle).start() for name in ("alice", "bob"))
        wait("bob answers", lambda: alice.run("ping", bob.id, "--count", "1")[0] == 0)
        code, answer, text = self.explain(alice, "bob")
        self.assertEqual((code, answer["outcome"], answer["remedy"]), (CAN, "can-talk", ""))
        self.assertIn("they can talk: 2 links", text)
        self.assertIn("sealed end to end", [finding["text"] for finding in answer["findings"]])
        # The two ends report a refusal as soon as one end revokes the key of the other end.
        bob.identity("revoke", alice.id)
        self.cannot(bob, (alice.id,), "its key is revoked", "on alice: causeway identity new --replace")
        self.cannot(alice, (bob.id,), "bob refuses this box", "on bob: causeway identity trust")

    def certificate(self, daemon, authority, *dates):
        """Give the daemon a new key, and a certificate that the authority issues for the key."""
        key, request, made = (self.path(f"{daemon.name}.{kind}") for kind in ("key", "csr", "pem"))
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        self.openssl("req", "-new", "-key", key, "-subj", f"/CN={daemon.name}", "-out", request)
        self.openssl("ca", "-batch", "-config", authority, "-in", request, "-out", made, *dates)
        # The key file is written directly: `identity import` would refuse a certificate that is expired.
        os.makedirs(daemon.state, mode=0o700)
        with open(daemon.state + "/node.key", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            for part in (key, made):
                with open(part, "rb") as source:
                    file.write(source.read())

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.root)

    def test_a_certificate_that_has_expired(self):
        anchors = self.path("anchors")
        os.makedirs(anchors)
        key, anchor, authority = self.path("ca.key"), os.path.join(anchors, "ca.pem"), self.path("ca.conf")
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        self.openssl("req", "-x509", "-key", key, "-subj", "/CN=authority", "-days", "9000", "-out", anchor)
        for name, text in (("index", ""), ("serial", "1001\n")):
            with open(self.path(name), "w") as file:
                file.write(text)
        with open(authority, "w") as file:
            file.write(
                "[ca]\ndefault_ca = a\n[a]\n"
                f"database = {self.path('index')}\nserial = {self.path('serial')}\nnew_certs_dir = {self.root}\n"
                f"certificate = {anchor}\nprivate_key = {key}\ndefault_md = sha256\npolicy = p\nx509_extensions = e\n"
                "[p]\ncommonName = supplied\n[e]\nkeyUsage = digitalSignature\nextendedKeyUsage = clientAuth, serverAuth\n")
        box = self.daemon("box", trust=f"policy = ca\nanchors = {anchors}")
        bob = self.daemon("bob", box)
        self.certificate(bob, authority, "-startdate", "20200101000000Z", "-enddate", "20210101000000Z")
        box.start()
        bob.start()
        bob_id = bob.id
        wait("it was refused", lambda: box.status["box"]["refused_strangers"] != [])
        self.cannot(box, (bob_id[:8],), "has expired", "give it a valid certificate")

    def test_a_name_under_which_another_key_is_pinned(self):
        box = self.daemon("box", trust="policy = first-use").start()
        bob = self.daemon("bob", box).start()
        wait("bob is pinned", lambda: box.neighbours() == ["bob"])
        false = self.daemon("false", box, display="bob").start()
        wait("the alarm is there", lambda: box.status["box"]["alarms"] != [])
        self.cannot(box, (false.id[:8],), "another key is pinned under its name", f"causeway identity trust {false.id} --name")
        self.assertEqual(self.explain(box, bob.id[:8])[0], CAN)
        # The refused node reports the refusal, too.
        self.cannot(false, (box.id[:8],), "it refuses this box: it does not trust this box's key or name", false.id)

    def test_an_impostor_two_links_away_is_refused_with_an_alarm(self):
        middle = self.daemon("middle").start()
        bob = self.daemon("bob", middle, trust="policy = first-use").start()
        alice = self.daemon("alice", middle).start()
        wait("alice answers", lambda: bob.run("ping", alice.id, "--count", "1")[0] == 0)
        wait("alice is pinned", lambda: f"{alice.id}  alice" in bob.identity("show"))
        alice.stop()
        impostor = self.daemon("impostor", middle, display="alice").start()
        wait("the name is refused", lambda: impostor.id in [node["id"] for node in bob.status["box"]["refused_strangers"]])
        # The advertisement alone proves nothing and raises no alarm, but the answers agree about the refusal.
        self.assertEqual(bob.status["box"]["alarms"], [])
        self.assertIn(f"see: causeway explain {impostor.id[:8]}", bob.status["box"]["refused_strangers"][0]["reason"])
        self.cannot(bob, (impostor.id,), "alice is refused here: another key is pinned under its name",
                    f"causeway identity trust {impostor.id} --name")
        # The session proves the key, and bob refuses the session.
        self.assertNotEqual(impostor.run("ping", bob.id, "--count", "1")[0], 0)
        wait("the alarm is there", lambda: [alarm["offered"] for alarm in bob.status["box"]["alarms"]] == [impostor.id])
        self.assertIn("see: causeway identity alarms", bob.status["box"]["refused_strangers"][0]["reason"])
        self.assertIn(f"but {impostor.id} was seen once", bob.run("identity", "alarms")[1])
        self.assertIn(f"{impostor.id} was seen under that name", bob.log("error"))
        self.cannot(bob, (impostor.id,), "another key is pinned under its name", f"causeway identity trust {impostor.id}")
        self.cannot(impostor, (bob.id,), "bob refuses this box", f"on bob: causeway identity trust {impostor.id}")
        self.assertIn("alarm ended", bob.identity("keep", impostor.id))
        self.assertIn(f"see: causeway explain {impostor.id[:8]}", bob.status["box"]["refused_strangers"][0]["reason"])
        # The operator accepts the key, and the profile that was refused is requested again.
        bob.identity("trust", impostor.id, "--name", "alice")
        wait("the impostor is a peer", lambda: impostor.id in [peer["id"] for peer in bob.status["peers"]])

    def test_a_key_that_is_revoked(self):
        box, bob = self.linked()
        bob_id = bob.id
        box.identity("revoke", bob_id)
        self.cannot(box, (bob_id[:8],), "its key is revoked", "on bob: causeway identity new --replace")
        self.cannot(bob, (box.id[:8],), "it refuses this box", "")

    # Nodes that cannot talk: incompatible settings, and the nodes between them

    def test_one_requires_encryption_and_the_other_has_none(self):
        box = self.daemon("box", extra="[peer]\nencryption = required").start()
        bob = self.daemon("bob", box, extra="[peer]\nencryption = none").start()
        wait("they are linked", lambda: box.neighbours() == ["bob"])
        for daemon, name, strict, silent in ((box, "bob", "this box", "bob"), (bob, "box", "box", "this box")):
            self.cannot(daemon, (name,), f"{strict} requires encryption, but {silent} has none",
                        f"on {silent}: [peer] encryption = optional")

    def test_all_links_of_a_box_are_taken(self):
        box = self.daemon("box")
        with open(box.config) as file:
            text = file.read()
        with open(box.config, "w") as file:
            file.write(text.replace("[node]\n", "[node]\npeers-max = 1\n"))
        box.start()
        first = self.daemon("first", box).start()
        wait("the place is taken", lambda: box.neighbours() == ["first"])
        second = self.daemon("second", box).start()
        self.cannot(second, (box.id[:8],), "all its links are in use", "raise [node] peers-max on ")
        second_id = second.id
        self.cannot(box, (second_id[:8],), "all links of this box are in use", "raise [node] peers-max here")
        self.assertEqual(self.explain(box, "first")[0], CAN)

    def test_a_box_in_the_middle_that_does_not_relay(self):
        middle = self.daemon("middle", relay=False).start()
        left, right = (self.daemon(name, middle).start() for name in ("left", "right"))
        wait("both are linked", lambda: middle.neighbours() == ["left", "right"])
        self.cannot(left, (right.id,), "the path would lead over middle, which does not relay", "on middle: [node] relay = yes")
        self.cannot(middle, ("left", "right"), "the path would lead over this box, which does not relay", "[node] relay = yes")

    def test_a_box_in_the_middle_that_is_gone(self):
        middle = self.daemon("middle")
        left = self.daemon("left", middle).start()
        middle.start()
        right = self.daemon("right", middle).start()
        wait("right is seen", lambda: "right" in left.run("peers")[1])
        os.kill(middle.process.pid, signal.SIGKILL)
        middle.process.wait()
        self.cannot(left, ("right",), "the path led over middle, to which this box has no link", "“causeway status” on middle")

    def test_another_machine_with_this_box_s_key(self):
        bob = self.daemon("bob")
        box = self.daemon("box", bob)
        box.identity("new")
        shutil.copytree(box.state, bob.state)
        box.start()
        bob.start()
        self.cannot(box, (f"127.0.0.1:{bob.port}",), "the node that answered has this box's own key", "causeway identity new --replace")

    def test_an_address_at_which_something_else_answers(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen(1)
            box = self.daemon("box", extra=f"[ip]\npeers = 127.0.0.1:{other.getsockname()[1]}").start()
            self.cannot(box, (f"127.0.0.1:{other.getsockname()[1]}",), "does not finish the TLS handshake", "it hangs")

    # Sessions

    def test_applications_are_told_with_their_sessions_and_nothing_that_they_say(self):
        box, bob = self.linked()
        self.assertEqual(box.run("sessions")[1], "no applications\n")
        sides = []
        for daemon in (box, bob):
            node = Node.connect("groupchat", f"{daemon.directory}/run/api.sock")
            self.addCleanup(node.close)
            session = node.open_session("groupchat")
            session.gather()
            node.advertise("groupchat", {"name": "secret-info"})
            sides.append(session)
        wait("they are in one session", lambda: all(side.connected() for side in sides))
        sides[1].send(b"nobody but the application reads this", timeout=20)
        answer = box.run("sessions", "--json")[1]
        (application,) = json.loads(answer)["applications"]
        self.assertEqual((application["name"], application["user"], application["process"], application["services"]),
                         ("groupchat", os.getuid(), os.getpid(), ["groupchat"]))
        (session,) = application["sessions"]
        self.assertEqual((session["type"], session["members"][0]["id"]), ("groupchat", bob.id))
        for secret in ("secret-info", "nobody but"):
            self.assertNotIn(secret, answer)
        self.assertRegex(box.run("sessions")[1], rf"(?m)^{session['id'][:8]}  groupchat  groupchat    1 ")
        findings = self.explain(box, "bob")[1]["findings"]
        self.assertIn(f"“groupchat” {session['id'][:8]}: bob is connected", [finding["text"] for finding in findings])

    def test_an_account_that_reads_may_ask(self):
        box, bob = self.linked()
        environment = {**os.environ, "SSH_ORIGINAL_COMMAND": f"explain {bob.id} --socket /elsewhere"}
        refused = subprocess.run([BINARY, "diagnose"], env=environment, capture_output=True, text=True)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("sessions explain", refused.stderr)


if __name__ == "__main__":
    unittest.main()
