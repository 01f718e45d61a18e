"""Identity, trust and revocation, tested with the causeway binary.

Real daemons run on the loopback interface. The openssl command makes the keys and certificates.
"""
# seconds: 25
import collections
import contextlib
import json
import os
import pty
import resource
import socket
import subprocess
import time
import unittest

from daemons import BINARY, CLIENT_HELLO_PREFIX, DaemonsTest, wait

class IdentityTest(DaemonsTest):
    def openssl(self, command, **options):
        done = subprocess.run(["sh", "-c", f"cd {self.root} && {command}"], capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def authority(self):
        self.openssl(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 3650"
            " -subj '/CN=Fleet' -addext keyUsage=keyCertSign,cRLSign")

    def certificate(self, name):
        """Make NAME.p12 with the password “secret”. It contains a key, and a certificate that the authority issued for
        it."""
        self.openssl(
            f"openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"
            f" && openssl x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 -out {name}.pem"
            f" && openssl pkcs12 -export -inkey {name}.key -in {name}.pem -certfile ca.pem -out {name}.p12 -passout pass:secret")

    # The commands

    def test_a_key_is_made_shown_exported_and_replaced_only_when_told(self):
        box = self.daemon("box")
        self.assertIn("there is no key yet", self.refused(box, "identity", "show"))
        made = box.identity("new").split("\n")[0]
        self.assertEqual(box.id, made)
        self.assertIn("--replace", self.refused(box, "identity", "new"))
        again = box.identity("new", "--replace").split("\n")[0]
        self.assertNotEqual(again, made)
        self.assertEqual(box.id, again)
        with open(self.path("out.pem"), "w") as file:
            file.write(box.identity("export"))
        self.assertIn(f"CN = {again}", self.openssl("openssl x509 -in out.pem -noout -subject"))
        with open(self.path("out.pem"), "w") as file:
            file.write(box.identity("export", "--key"))
        self.openssl("openssl pkey -in out.pem -noout")
        self.assertEqual(os.stat(box.state + "/node.key").st_mode & 0o777, 0o600)

    def test_a_pkcs12_file_becomes_the_identity(self):
        self.authority()
        self.certificate("node")
        box = self.daemon("box")
        with open(self.path("password"), "w") as file:
            file.write("secret\n")
        with open(self.path("wrong"), "w") as file:
            file.write("Secret\n")
        file = self.path("node.p12")
        self.assertIn("wrong password", self.refused(box, "identity", "import", file, "--password-file", self.path("wrong")))
        node = box.identity("import", file, "--password-file", self.path("password")).split("\n")[0]
        digest = self.openssl("openssl pkey -in node.key -pubout -outform DER | openssl dgst -sha256 -r")
        self.assertTrue(digest.startswith(node))
        self.assertIn("certificate  CN=node, by CN=Fleet, ", box.identity("show"))
        self.assertIn("certificate  CN=Fleet (CA), by itself, ", box.identity("show"))

    def test_a_key_is_read_under_each_encryption_that_openssl_writes(self):
        """The firmware includes only some ciphers of mbedTLS. All ciphers that openssl uses in such files must be among
        these."""
        self.authority()
        self.certificate("node")
        with open(self.path("password"), "w") as file:
            file.write("secret\n")
        p12 = "openssl pkcs12 -export -inkey node.key -in node.pem -passout pass:secret"
        pem = "cat node.pem; openssl ec -in node.key -passout pass:secret"
        pkcs8 = "cat node.pem; openssl pkcs8 -topk8 -in node.key -passout pass:secret"
        ways = [f"{p12} -legacy -certpbe PBE-SHA1-3DES", f"{p12} -macalg sha1", f"{p12} -macalg sha512", f"{p12} -keypbe AES-128-CBC",
                f"({pem} -des3)", f"({pem} -aes128)", f"({pem} -aes256)", f"({pkcs8} -v2 aes-256-cbc)", f"({pkcs8} -v2 des3)",
                f"({pkcs8} -v2 aes-128-cbc -v2prf hmacWithSHA512)"]
        for number, way in enumerate(ways):
            with self.subTest(way):
                box = self.daemon(f"box{number}")
                self.openssl(f"{way} > file{number}")
                box.identity("import", self.path(f"file{number}"), "--password-file", self.path("password"))
                self.assertIn("CN=node, by CN=Fleet", box.identity("show"))

    def test_a_pem_file_is_imported_whole_or_not_at_all(self):
        self.authority()
        self.certificate("node")
        box = self.daemon("box")
        with open(self.path("node.key")) as file:
            key = file.read()
        with open(self.path("node.pem")) as file:
            certificate = file.read()
        lines = key.count("\n")
        for behind in (certificate.replace("CERTIFICATE", "TRUSTED CERTIFICATE"), certificate.replace("-----BEGIN", "----BEGIN"),
                       certificate.replace("-----BEGIN CERTIFICATE-----\n", ""), "-----BEGIN CERT", certificate.replace("\n", "\r"), key,
                       json.dumps({"ca": certificate}) + "\n"):
            with open(self.path("file"), "w", newline="") as file:
                file.write(key + behind)
            self.assertIn(f"file:{lines + 1}: ", self.refused(box, "identity", "import", self.path("file")), behind)
            self.assertFalse(os.path.exists(box.state + "/node.key"))
        self.openssl("(cat node.key; echo; openssl x509 -in node.pem -text) > file")
        box.identity("import", self.path("file"))
        self.assertIn("certificate  CN=node, by CN=Fleet, ", box.identity("show"))

    def test_a_chain_that_every_box_with_policy_ca_refuses_is_not_imported_and_is_a_fault(self):
        """The file has another authority of the name that issued the box's certificate."""
        self.authority()
        self.certificate("node")
        self.openssl("mv ca.pem right.pem")
        self.authority()
        self.openssl("cat node.key node.pem ca.pem > wrong && cat node.key node.pem > alone")
        box = self.daemon("box")
        self.assertIn("the signature of a certificate is wrong", self.refused(box, "identity", "import", self.path("wrong")))
        self.assertFalse(os.path.exists(box.state + "/node.key"))
        code, _, err = box.run("identity", "import", self.path("alone"))
        self.assertEqual(code, 0)
        self.assertIn("note: this box's chain lacks its issuer, CN=Fleet", err)
        self.openssl(f"cat wrong > {box.state}/node.key")
        box.start()
        faults = [bearer["problem"] for bearer in box.status["bearers"] if bearer["name"] == "identity"]
        self.assertIn("the signature of a certificate is wrong", faults[0])
        code, out, _ = box.run("doctor")
        self.assertEqual(code, 1)
        self.assertIn("WRONG  identity", out)

    def test_an_expired_certificate_is_not_imported(self):
        self.openssl(
            "openssl ecparam -name prime256v1 -genkey -noout -out node.key && mkdir ca && cd ca && touch index.txt && echo 01 > serial"
            " && printf '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nnew_certs_dir=.\nserial=serial\ndefault_md=sha256\nunique_subject=no\n"
            "policy=p\n[p]\ncommonName=supplied\n' > conf && openssl req -new -key ../node.key -subj /CN=node -out csr"
            " && openssl ca -batch -config conf -in csr -selfsign -keyfile ../node.key -notext -out ../old.pem"
            " -startdate 20260101000000Z -enddate 20260201000000Z"
            " && openssl ca -batch -config conf -in csr -selfsign -keyfile ../node.key -notext -out ../new.pem"
            " -startdate 20260101000000Z -enddate 20360101000000Z && cd .. && cat node.key old.pem > old && cat old new.pem > both")
        box = self.daemon("box")
        self.assertIn("expired on 2026-02-01; have a new one issued", self.refused(box, "identity", "import", self.path("old")))
        box.identity("import", self.path("both"))
        self.assertIn("2026-01-01 to 2036-01-01", box.identity("show"))

    def test_a_password_is_asked_for_without_echo(self):
        self.authority()
        self.certificate("node")
        box = self.daemon("box")
        child, terminal = pty.fork()
        if child == 0:
            os.execv(BINARY, [BINARY, "identity", "import", self.path("node.p12"), "--config", box.config])
        shown = os.read(terminal, 1000)
        while b"Password of" not in shown:
            shown += os.read(terminal, 1000)
        time.sleep(0.2)
        os.write(terminal, b"secret\n")
        try:
            while True:
                shown += os.read(terminal, 1000)
        except OSError:
            pass
        self.assertEqual(os.waitpid(child, 0)[1], 0, shown)
        self.assertNotIn(b"secret", shown)
        self.assertIn(box.id.encode(), shown)

    def test_two_daemons_do_not_share_a_state_directory(self):
        box = self.daemon("box").start()
        os.makedirs(self.path("second"))
        with open(box.config) as file:
            config = file.read().replace(box.directory + "/run", self.path("second"))
        with open(self.path("second/conf"), "w") as file:
            file.write(config)
        done = subprocess.run(
            [BINARY, "run", "--config", self.path("second/conf")], capture_output=True, text=True, timeout=10)
        self.assertEqual(done.returncode, 1)
        self.assertIn("another causeway uses it", done.stderr)

    def test_usage_is_told_in_one_line(self):
        box = self.daemon("box")
        for words in (["identity", "trust"], ["identity", "revoke", "a", "b"], ["identity", "new", "--nonsense"]):
            code, out, err = box.run(*words)
            self.assertEqual((code, out), (2, ""))
        for word in ("show", "new", "import", "export", "trust", "untrust", "revoke", "alarms", "accept", "keep", "dismiss"):
            self.assertEqual(box.run("identity", word, "--help")[0], 0)
        box.identity("new")
        self.assertIn("no known name or id matches", self.refused(box, "identity", "revoke", "nobody"))

    # Admission

    def test_ten_thousand_half_open_connections_keep_nobody_out(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 11_000), hard))
        box = self.daemon("box").start()
        before = box.resident_bytes()
        held = collections.deque()
        for number in range(10_000):
            connection = socket.socket()
            connection.setblocking(False)
            # The complete range 127.0.0.0/8 is loopback, so each connection can have its own source address.
            connection.bind((f"127.2.{number // 250}.{number % 250 + 1}", 0))
            connection.connect_ex(("127.0.0.1", box.port))
            with contextlib.suppress(OSError):
                connection.send(CLIENT_HELLO_PREFIX)
            held.append(connection)
            if len(held) > min(hard, 11_000) - 500:
                held.popleft().close()
        bob = self.daemon("bob", box).start()
        wait("bob is linked", lambda: box.neighbours() == ["bob"])
        self.assertLess(box.resident_bytes() - before, 8 << 20)
        wait("the log tells of those who were not admitted", lambda: "not admitted" in box.log("warning"))
        for connection in held:
            connection.close()
        bob.stop()

    # Trust

    def test_a_changed_key_under_a_known_name_is_refused_with_an_alarm(self):
        box = self.daemon("box", trust="policy = first-use").start()
        bob = self.daemon("bob", box).start()
        wait("bob is linked", lambda: box.neighbours() == ["bob"])
        first = bob.id
        wait("the pin is on disk", lambda: first in box.identity("show"))
        bob.stop()
        bob.identity("new", "--replace")
        bob.start()
        wait("the alarm is in the status", lambda: first in box.status["box"]["alarm"])
        self.assertIn(bob.id, box.status["box"]["alarm"])
        self.assertEqual(box.neighbours(), [])
        self.assertIn("is " + first, box.log("error"))
        self.assertIn("ALARM", box.run("status")[1])
        # The operator accepts bob's new key.
        box.identity("accept", bob.id)
        self.assertEqual(box.status["box"]["alarm"], "")
        bob.stop()
        bob.start()
        wait("bob is linked again", lambda: box.neighbours() == ["bob"])

    def test_a_revoked_key_loses_its_link_at_once_and_stays_out(self):
        box = self.daemon("box").start()
        bob = self.daemon("bob", box).start()
        wait("bob is linked", lambda: box.neighbours() == ["bob"])
        self.assertIn("is revoked", box.identity("revoke", bob.id))
        wait("the link is gone", lambda: box.neighbours() == [], 2)
        for daemon in (box, bob):
            daemon.stop()
            daemon.start()
        time.sleep(2)
        self.assertEqual(box.neighbours(), [])
        self.assertIn("its key is revoked", box.log("notice"))
        self.assertIn("TLS alert 44", bob.log("notice"))
        self.assertIn("stays revoked", self.refused(box, "identity", "trust", bob.id))

    def test_an_operators_revocation_reaches_the_boxes_that_follow_it(self):
        operator = self.daemon("operator")
        operator.identity("new")
        box = self.daemon("box", operator, trust=f"operators = {operator.id}")
        far = self.daemon("far", box, trust=f"operators = {operator.id}")
        bob = self.daemon("bob", far)
        for daemon in (operator, box, far, bob):
            daemon.start()
        wait("the chain stands", lambda: "bob" in far.neighbours() and box.neighbours() == ["far", "operator"])
        operator.identity("revoke", bob.id)
        wait("bob is cut off two links away", lambda: "bob" not in far.neighbours(), 3)
        self.assertIn(f"revoked      {bob.id}", far.identity("show"))
        # The far node has stored the revocation, and applies it while the operator's node is off.
        for daemon in (operator, far):
            daemon.stop()
        far.start()
        wait("far is back", lambda: "box" in far.neighbours())
        time.sleep(1)
        self.assertEqual(far.neighbours(), ["box"])

    def test_under_ca_only_the_fleet_is_let_in(self):
        self.authority()
        os.makedirs(self.path("anchors"))
        self.openssl("cp ca.pem anchors/")
        with open(self.path("password"), "w") as file:
            file.write("secret\n")
        trust = f"policy = ca\nanchors = {self.path('anchors')}"
        box = self.daemon("box", trust=trust)
        member = self.daemon("member", box, trust=trust)
        stranger = self.daemon("stranger", box)
        for daemon in (box, member):
            self.certificate(daemon.name)
            daemon.identity("import", self.path(daemon.name + ".p12"), "--password-file", self.path("password"))
        for daemon in (box, member, stranger):
            daemon.start()
        wait("the member is linked", lambda: box.neighbours() == ["member"])
        wait("the stranger is refused", lambda: "no authority in the anchors directory" in box.log("notice"))
        self.assertIn("its certificate chain ends at one", box.identity("show"))
        # The operator pins the node, which needs no certificate of the authority after that.
        box.identity("trust", stranger.id, "--name", "stranger")
        wait("the stranger is linked", lambda: "stranger" in box.neighbours(), 40)


if __name__ == "__main__":
    unittest.main()
