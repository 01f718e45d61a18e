"""A box whose trust anchors cannot be parsed admits no node.

Real daemons run on the loopback interface with the policy `ca`. The openssl command makes the keys, certificates and
revocation lists."""
import json
import os
import subprocess
import unittest

from daemons import DaemonsTest, wait

CONFIG = """[ca]
default_ca = d
[d]
database = index.txt
new_certs_dir = .
serial = serial
default_md = sha256
policy = p
default_crl_days = 30
[p]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
[mail]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
extendedKeyUsage = critical,emailProtection
[node]
keyUsage = critical,digitalSignature
extendedKeyUsage = clientAuth,serverAuth
[server]
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
[agreement]
keyUsage = critical,keyAgreement
[whole]
issuingDistributionPoint = critical,@point
[point]
fullname = URI:http://ca.example/list.crl
[some]
2.5.29.28 = critical,DER:30:04:83:02:01:40
[delta]
2.5.29.27 = critical,DER:02:01:01
[indirect]
2.5.29.28 = critical,DER:30:03:84:01:FF
[plain]
2.5.29.20 = DER:02:01:01
"""


class AnchorsTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("anchors"))
        for name, text in (("ca.conf", CONFIG), ("index.txt", ""), ("serial", "1000\n")):
            with open(self.path(name), "w") as file:
                file.write(text)
        self.certificate("root", "authority")
        self.openssl("cp root.pem anchors")

    def openssl(self, command):
        done = subprocess.run(["sh", "-c", f"cd {self.root} && {command}"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def certificate(self, name, section, issuer="root"):
        """Make the certificate NAME.pem, and NAME.both, which contains the certificate and its key."""
        signer = f"-selfsign -keyfile {name}.key" if name == issuer else f"-cert {issuer}.pem -keyfile {issuer}.key"
        self.openssl(
            f"openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {name}.key"
            f" && openssl req -new -key {name}.key -subj /CN={name} -out {name}.csr"
            f" && openssl ca -batch -config ca.conf -in {name}.csr -out {name}.pem -notext -extensions {section} {signer}"
            f" -startdate 20260101000000Z -enddate 20360101000000Z && cat {name}.key {name}.pem > {name}.both")

    def list(self, section, revoking=(), file="list.pem", issuer="root"):
        """Make a revocation list of the root, or of authority `issuer`, in the anchors directory. It lists
        `revoking`."""
        signer = f"-config ca.conf -cert {issuer}.pem -keyfile {issuer}.key"
        for name in revoking:
            self.openssl(f"openssl ca -batch {signer} -revoke {name}.pem")
        self.openssl(f"openssl ca {signer} -gencrl -crlexts {section} -out anchors/{file}")

    def member(self, name, box=None, section="node", trust="", issuer="root"):
        self.certificate(name, section, issuer)
        daemon = self.daemon(name, *[box] if box else [], trust=trust)
        os.makedirs(daemon.state, mode=0o700)
        self.openssl(f"cp {name}.both {daemon.state}/node.key && chmod 600 {daemon.state}/node.key")
        return daemon

    def box(self, policy="ca"):
        return self.member("box", trust=f"policy = {policy}\nanchors = {self.path('anchors')}")

    def findings(self, daemon, check):
        code, out, _ = daemon.run("doctor")
        return code, [line for line in out.splitlines() if line[7:].startswith(check + " ")]

    def faults(self, daemon):
        return {bearer["name"]: bearer["problem"] for bearer in daemon.status["bearers"] if bearer["problem"]}

    def refusals(self, daemon, reason):
        return [node for node in daemon.status["box"]["refused_strangers"] if reason in node["reason"]]

    def test_a_list_of_a_critical_distribution_point_revokes(self):
        box = self.box()
        good, bad = self.member("good", box), self.member("bad", box)
        self.list("whole", ["bad"])
        self.assertEqual(box.run("config", "check")[0], 0)
        for daemon in (box, good, bad):
            daemon.start()
        wait("the good one is linked", lambda: box.neighbours() == ["good"])
        wait("the bad one is refused", lambda: self.refusals(box, "is revoked (CRL)"))
        self.assertEqual(box.neighbours(), ["good"])
        self.assertNotIn("trust", self.faults(box))
        self.assertIn("1 revocation lists", box.run("status")[1])

    def test_a_list_that_is_not_understood_lets_nobody_in_and_everything_says_so(self):
        box = self.box()
        good = self.member("good", box)
        for section in ("delta", "some", "indirect"):
            self.list(section)
            box.start()
            good.start()
            wait("the good one is refused", lambda: self.refusals(box, "that may revoke it cannot be read"))
            self.assertEqual(box.neighbours(), [], section)
            self.assertIn("anchors/list.pem:1: an unusable revocation list", self.faults(box)["trust"])
            code, lines = self.findings(box, "anchors")
            self.assertEqual((code, lines[0][:5]), (1, "WRONG"), lines)
            code, _, err = box.run("config", "check")
            self.assertEqual(code, 1)
            self.assertIn("list.pem:1: an unusable revocation list", err)
            # The box uses the corrected list after a reload, without a restart.
            self.list("plain")
            self.assertEqual(box.run("reload")[0], 0)
            wait("the good one is linked", lambda: box.neighbours() == ["good"], 40)
            self.assertNotIn("trust", self.faults(box))
            self.assertEqual(box.run("config", "check")[0], 0)
            box.stop()
            good.stop()

    def test_a_bundle_that_is_cut_within_a_certificate_lets_nobody_in(self):
        """The revocation list follows the cut certificate in the same file, so the list and its revocations are lost,
        too."""
        box = self.box()
        bad = self.member("bad", box)
        self.certificate("other", "authority", "other")
        self.list("plain", ["bad"])
        self.openssl("cat root.pem other.pem anchors/list.pem > whole && rm anchors/*")
        with open(self.path("whole"), "rb") as file:
            whole = file.read()
        with open(self.path("root.pem"), "rb") as file:
            first = len(file.read())
        with open(self.path("anchors/bundle.pem"), "wb") as file:
            file.write(whole[:first + 200])
        code, _, err = box.run("config", "check")
        self.assertEqual(code, 1)
        self.assertIn("its END line is missing: the file is truncated; no certificate is accepted", err)
        for daemon in (box, bad):
            daemon.start()
        wait("the bad one is refused", lambda: self.refusals(box, "that may revoke it cannot be read"))
        self.assertEqual(box.neighbours(), [])
        with open(self.path("anchors/bundle.pem"), "wb") as file:
            file.write(whole)
        self.assertEqual(box.run("reload")[0], 0)
        wait("the bad one is revoked", lambda: self.refusals(box, "is revoked (CRL)"), 40)

    def test_a_list_with_a_wrong_signature_is_a_fault_before_a_peer_is_refused(self):
        box = self.box()
        good = self.member("good", box)
        self.list("plain")
        with open(self.path("anchors/list.pem")) as file:
            lines = file.read().splitlines()
        # The end of the last full line of base64 is in the signature.
        lines[-3] = lines[-3][:50] + ("A" if lines[-3][50] != "A" else "B") + lines[-3][51:]
        with open(self.path("anchors/list.pem"), "w") as file:
            file.write("\n".join(lines) + "\n")
        text = "list.pem:1: the revocation list of CN=root is not signed by that authority"
        code, _, err = box.run("config", "check")
        self.assertEqual(code, 1)
        self.assertIn(text, err)
        box.start()
        self.assertIn(text, self.faults(box)["trust"])
        code, lines = self.findings(box, "anchors")
        self.assertEqual((code, lines[0][:5]), (1, "WRONG"), lines)
        code, _, err = box.run("reload")
        self.assertEqual(code, 1)
        self.assertIn(text, err)
        good.start()
        wait("the good one is refused", lambda: self.refusals(box, "is not signed by it"))
        self.list("plain")
        self.assertEqual(box.run("reload")[0], 0)
        wait("the good one is linked", lambda: box.neighbours() == ["good"], 40)

    def test_a_list_within_a_line_of_text_lets_nobody_in(self):
        """The list is in a JSON line behind the certificate of its authority."""
        box = self.box()
        bad = self.member("bad", box)
        self.list("plain", ["bad"])
        with open(self.path("anchors/list.pem")) as file:
            text = json.dumps({"crl": file.read()})
        self.openssl("rm anchors/list.pem")
        with open(self.path("anchors/root.pem"), "a") as file:
            file.write(text + "\n")
        code, _, err = box.run("config", "check")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"anchors/root.pem:\d+: BEGIN or END of a block within text.*; no certificate is accepted")
        for daemon in (box, bad):
            daemon.start()
        wait("the bad one is refused", lambda: self.refusals(box, "that may revoke it cannot be read"))
        self.assertEqual(box.neighbours(), [])
        self.assertIn("BEGIN or END of a block", self.faults(box)["trust"])
        self.assertEqual(self.findings(box, "anchors")[0], 1)

    def test_a_reload_with_a_list_that_is_not_understood_ends_the_links_that_it_may_revoke_and_fails(self):
        box = self.box()
        good = self.member("good", box)
        self.list("plain")
        for daemon in (box, good):
            daemon.start()
        wait("the good one is linked", lambda: box.neighbours() == ["good"])
        self.list("delta")
        code, out, err = box.run("reload")
        self.assertEqual(code, 1)
        self.assertIn("delta list", out + err)
        self.assertIn("delta list", self.faults(box)["trust"])
        self.assertNotIn("configuration", self.faults(box))
        wait("the link ends", lambda: box.neighbours() == [])
        self.assertTrue(self.refusals(box, "that may revoke it cannot be read"))
        self.list("plain")
        self.assertEqual(box.run("reload")[0], 0)
        wait("the good one is linked again", lambda: box.neighbours() == ["good"], 40)
        self.assertNotIn("trust", self.faults(box))

    def box_with_two_members(self):
        """Start a box, and the members good and bad that are linked with it. Then write a list that revokes bad."""
        box = self.box()
        for daemon in (box, self.member("good", box), self.member("bad", box)):
            daemon.start()
        wait("both are linked", lambda: box.neighbours() == ["bad", "good"])
        self.list("plain", ["bad"])
        return box

    def test_a_reload_applies_a_list_beside_a_file_that_is_not_understood(self):
        box = self.box_with_two_members()
        with open(self.path("anchors/README"), "w") as file:
            file.write("The lists of the fleet.\n")
        code, out, err = box.run("reload")
        self.assertEqual(code, 1)
        self.assertIn("anchors/README: contains neither a certificate nor a CRL", out + err)
        wait("the links end", lambda: box.neighbours() == [])
        code, lines = self.findings(box, "anchors")
        self.assertEqual((code, lines[0][:5]), (1, "WRONG"), lines)
        os.remove(self.path("anchors/README"))
        self.assertEqual(box.run("reload")[0], 0)
        wait("the good one is linked again", lambda: box.neighbours() == ["good"], 40)
        wait("the bad one is revoked", lambda: self.refusals(box, "is revoked (CRL)"), 40)

    def test_a_reload_with_an_error_in_the_configuration_applies_a_new_list_nevertheless(self):
        box = self.box_with_two_members()
        with open(box.config, "a") as file:
            file.write("[journal]\nlevel = loud\n")
        code, out, err = box.run("reload", "--socket", box.directory + "/run/control.sock")
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, "not reloaded: .*loud.*; \\[trust\\] anchors apply nevertheless: 1 anchors, 1 revocation lists")
        box.write()
        self.assertIn("not reloaded", self.faults(box)["configuration"])
        wait("the bad one is revoked", lambda: self.refusals(box, "is revoked (CRL)"))
        self.assertEqual(box.neighbours(), ["good"])

    def test_a_reload_ends_a_sealed_session_with_a_node_behind_a_relay_whose_certificate_is_revoked(self):
        box = self.box()
        relay = self.member("relay", box)
        bad = self.member("bad", relay)
        for daemon in (box, relay, bad):
            daemon.start()
        wait("the box sees both", lambda: "bad" in box.run("peers")[1])
        self.assertEqual(box.run("ping", "bad", "--count", "1")[0], 0)
        self.list("plain", ["bad"])
        self.assertEqual(box.run("reload")[0], 0)
        wait("the bad one is revoked", lambda: self.refusals(box, "is revoked (CRL)"))
        self.assertNotEqual(box.run("ping", "bad", "--count", "1", "--timeout", "2")[0], 0)
        self.assertEqual(box.run("ping", "relay", "--count", "1")[0], 0)

    def test_a_list_counts_any_number_of_steps_above_an_anchor(self):
        self.certificate("one", "authority")
        self.certificate("two", "authority", "one")
        self.openssl("cp one.pem two.pem anchors")
        box = self.box()
        good, bad = self.member("good", box), self.member("bad", box, issuer="two")
        self.list("plain", ["one"])
        self.assertEqual(box.run("config", "check")[0], 0)
        for daemon in (box, good, bad):
            daemon.start()
        wait("the good one is linked", lambda: box.neighbours() == ["good"])
        wait("the bad one is refused", lambda: self.refusals(box, "is revoked (CRL)"))
        self.assertEqual(box.neighbours(), ["good"])

    def test_a_list_that_nobody_can_verify_keeps_out_those_below_its_anchor(self):
        self.certificate("one", "authority")
        self.openssl("rm anchors/root.pem && cp one.pem anchors")
        self.list("plain")
        box = self.member("box", trust=f"policy = ca\nanchors = {self.path('anchors')}", issuer="one")
        other = self.member("other", box, issuer="one")
        box.start()
        other.start()
        wait("it is refused", lambda: self.refusals(box, "that may revoke it cannot be read"))
        self.assertIn("the revocation list of CN=root, which issued an anchor, cannot be verified", self.faults(box)["trust"])
        code, lines = self.findings(box, "anchors")
        self.assertEqual((code, lines[0][:5]), (1, "WRONG"), lines)
        self.assertEqual(box.run("config", "check")[0], 1)
        self.openssl("cp root.pem anchors")
        self.assertEqual(box.run("reload")[0], 0)
        wait("it is linked", lambda: box.neighbours() == ["other"], 40)
        self.assertNotIn("trust", self.faults(box))

    def test_a_list_of_no_authority_here_is_noted(self):
        self.certificate("one", "authority")
        self.list("plain", issuer="one")
        box = self.box()
        code, out, err = box.run("config", "check")
        self.assertEqual((code, err.count("\n")), (0, 1), err)
        self.assertIn("note: the revocation list of CN=one belongs to no authority", err)
        _, lines = self.findings(box, "anchors")
        self.assertEqual([line[:4] for line in lines], ["note"])
        box.start()
        self.assertIn("1 revocation lists (1 by no authority here)", " ".join(box.run("status")[1].split()))
        self.assertNotIn("trust", self.faults(box))

    def test_an_authority_for_other_uses_admits_nobody(self):
        self.certificate("mail", "mail")
        box = self.box()
        good, bad = self.member("good", box), self.member("bad", box, issuer="mail")
        self.openssl(f"cat mail.pem >> {bad.state}/node.key")
        for daemon in (box, good, bad):
            daemon.start()
        wait("the good one is linked", lambda: box.neighbours() == ["good"])
        wait("the bad one is refused", lambda: self.refusals(box, "its certificate does not allow this use"))
        self.assertEqual(box.neighbours(), ["good"])

    def test_a_certificate_that_is_not_for_clients_links_nowhere(self):
        for policy in ("open", "ca"):
            box = self.member(f"box-{policy}", trust=f"policy = {policy}\nanchors = {self.path('anchors')}").start()
            for section in ("server", "agreement"):
                name = f"{section}-{policy}"
                # One member dials the box. A second member with a certificate of this kind is dialled by a node of the
                # same policy.
                dials = self.member(name, box, section).start()
                is_dialled = self.member(name + "2", section=section).start()
                asks = self.member(f"asks-{name}", is_dialled, trust=f"policy = {policy}\nanchors = {self.path('anchors')}").start()
                wait("it is refused", lambda: "its certificate does not allow this use" in box.log("notice"))
                # A TLS server presents no certificate if its certificate does not allow signatures, so the handshake
                # fails.
                why = "its certificate does not allow this use" if section == "server" else "handshake_failure"
                wait("it is refused when it is dialled", lambda: why in asks.log("notice"))
                self.assertEqual((box.neighbours(), asks.neighbours(), is_dialled.neighbours()), ([], [], []), name)
                code, lines = self.findings(dials, "identity")
                self.assertEqual((code, lines[0][:5]), (1, "WRONG"), lines)
                self.assertIn("identity", self.faults(dials))
                for daemon in (dials, is_dialled, asks):
                    daemon.stop()
            box.stop()

    def test_a_chain_that_no_peer_takes_is_not_imported(self):
        issuer = "root"
        for depth in range(9):
            self.certificate(f"ca{depth}", "authority", issuer)
            issuer = f"ca{depth}"
        self.certificate("leaf", "node", issuer)
        self.openssl("cat leaf.both " + " ".join(f"ca{depth}.pem" for depth in reversed(range(9))) + " root.pem > chain.pem")
        box = self.daemon("long")
        self.assertIn("more than 8 certificates", self.refused(box, "identity", "import", self.path("chain.pem")))
        self.assertFalse(os.path.exists(box.state + "/node.key"))
        # The second case: the chain is already in the state directory when the box starts.
        os.makedirs(box.state, mode=0o700, exist_ok=True)
        self.openssl(f"cp chain.pem {box.state}/node.key && chmod 600 {box.state}/node.key")
        box.start()
        self.assertIn("more than 8 certificates", self.faults(box)["identity"])
        code, lines = self.findings(box, "identity")
        self.assertEqual((code, lines[0][:5]), (1, "WRONG"), lines)

    def test_a_configuration_of_which_a_line_would_be_skipped_is_refused(self):
        box = self.daemon("box")
        for text, line in (("[trust] policy = ca\n[node]\n", 1), ("[node]\n[trust]policy = ca\n", 2), ("[trust]\rpolicy = ca\r", 1)):
            with open(box.config, "w", newline="") as file:
                file.write(text)
            for words in (["config", "check"], ["run"]):
                code, out, err = box.run(*words)
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(f"{box.config}:{line}: ", err)

    def tear(self, *paths):
        for path in paths:
            with open(path, "r+b") as file:
                file.write(b"torn")

    def test_a_damaged_state_forgets_no_revocation(self):
        box = self.daemon("box").start()
        box.identity("revoke", "1" * 32)
        box.stop()
        self.tear(box.state + "/state")
        self.assertIn("1" * 32, box.identity("show"))
        box.start()
        self.assertIn("its previous version is used", self.faults(box)["trust-state"])
        self.assertIn("1" * 32, box.identity("show"))

    def test_a_state_that_is_a_link_to_nowhere_is_not_an_absent_one(self):
        box = self.daemon("box").start()
        box.identity("revoke", "1" * 32)
        box.stop()
        os.remove(box.state + "/state.old")
        os.rename(box.state + "/state", self.path("moved"))
        os.symlink("/nonexistent/state", box.state + "/state")
        for words in (["run"], ["identity", "show"]):
            code, _, err = box.run(*words)
            self.assertEqual(code, 1, err)
            self.assertIn("so the revoked keys are unknown", err)

    def test_without_its_state_a_box_does_not_start(self):
        box = self.daemon("box").start()
        box.identity("trust", "1" * 32)
        box.stop()
        self.tear(box.state + "/state", box.state + "/state.old")
        code, _, err = box.run("run")
        self.assertEqual(code, 1, err)
        self.assertIn("so the revoked keys are unknown", err)
        code, lines = self.findings(box, "identity")
        self.assertEqual((code, lines[0][:5]), (1, "WRONG"), lines)
        self.assertEqual(box.run("identity", "revoke", "2" * 32)[0], 1)


if __name__ == "__main__":
    unittest.main()
