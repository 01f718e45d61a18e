"""Applications that admit members to sessions by the certificates of the members' nodes.

Real daemons run on the loopback interface. The openssl command makes the keys and certificates."""
import subprocess
import tempfile
import unittest

from causeway import Member, Node, Outcome, Question, Result, State
from daemons import Daemon
from local_api import following, path


class CertificatesTest(unittest.TestCase):
    def setUp(self):
        root = tempfile.TemporaryDirectory(prefix="causeway-")
        self.addCleanup(root.cleanup)
        self.root = root.name
        self.openssl(
            "openssl req -x509 -newkey rsa:4096 -nodes -keyout ca.key -out ca.pem -days 3650 -subj /CN=Fleet"
            " -addext keyUsage=keyCertSign,cRLSign"
            " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout b.key -out b.csr -subj /CN=b"
            " && openssl x509 -req -in b.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 -out b.pem"
            " && echo secret > password && openssl pkcs12 -export -inkey b.key -in b.pem -certfile ca.pem -out b.p12 -passout pass:secret")

    def openssl(self, command, **options):
        done = subprocess.run(["sh", "-c", f"cd {self.root} && {command}"], capture_output=True, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def boxes(self, extra=""):
        """Start box a with a self-signed certificate, and box b with a certificate that an authority issued."""
        self.a = Daemon(self.root, "a", extra=extra)
        self.b = Daemon(self.root, "b", [self.a], extra=extra)
        self.b.identity("import", f"{self.root}/b.p12", "--password-file", f"{self.root}/password")
        for daemon in (self.a, self.b):
            self.addCleanup(daemon.stop)
            daemon.start()

    def session(self, daemon, **options):
        node = Node.connect("judge", path(daemon))
        self.addCleanup(node.close)
        return node.open_session("story", decides=True, **options)

    def questions(self, **options):
        """Connect two applications to each other's addresses. Both want to decide on the certificates. Returns the two
        sessions, the pending connections, and the question that each application received."""
        ours, theirs = self.session(self.a, **options), self.session(self.b, **options)
        waits = [ours.connect(theirs.address), theirs.connect(ours.address)]
        return ours, theirs, waits, following(ours, Question), following(theirs, Question)

    def node_of(self, certificate):
        """The node id of a certificate's key."""
        digest = self.openssl(
            "openssl x509 -inform DER -noout -pubkey | openssl pkey -pubin -outform DER | openssl dgst -sha256 -r",
            input=certificate)
        return bytes.fromhex(digest.decode()[:32])

    def test_both_get_the_others_certificates_and_verify_them(self):
        self.boxes()
        ours, theirs, waits, about_b, about_a = self.questions()
        # b sends its own certificate and that of the authority.
        self.assertEqual(len(about_b.certificates), 2)
        self.assertEqual(self.node_of(about_b.certificates[0]), theirs.address.node)
        self.openssl("cat > leaf.der", input=about_b.certificates[0])
        self.openssl("openssl x509 -inform DER -in leaf.der -out leaf.pem && openssl verify -CAfile ca.pem leaf.pem")
        self.assertEqual(about_b.certificates[1], self.openssl("openssl x509 -in ca.pem -outform DER"))
        # a sends one certificate, which is self-signed.
        self.assertEqual(len(about_a.certificates), 1)
        self.assertEqual(self.node_of(about_a.certificates[0]), ours.address.node)
        self.openssl("cat > own.der", input=about_a.certificates[0])
        self.openssl("openssl x509 -inform DER -in own.der -out own.pem && openssl verify -CAfile own.pem own.pem")
        ours.decide(about_b.address, True)
        theirs.decide(about_a.address, True)
        self.assertEqual([wait.wait(20)[0] for wait in waits], [Outcome.CONNECTED] * 2)
        self.assertEqual(ours.send(b"verified", timeout=20), {theirs.address: Result.DELIVERED})

    def test_one_that_finds_the_certificates_wanting_rejects_the_member(self):
        self.boxes()
        ours, theirs, _, about_b, about_a = self.questions()
        theirs.decide(about_a.address, True)
        ours.decide(about_b.address, False)
        self.assertEqual(following(ours, Member, state=State.REJECTED).address, theirs.address)

    def test_where_traffic_is_not_sealed_there_are_none(self):
        self.boxes("[peer]\nencryption = none\n")
        _, _, _, about_b, about_a = self.questions(unsealed=True)
        self.assertEqual((about_b.certificates, about_a.certificates), ([], []))


if __name__ == "__main__":
    unittest.main()
