"""URLs that `causeway send` fetches before it offers their contents, with real daemons and a web server."""
import base64
import contextlib
import http.server
import json
import os
import pathlib
import signal
import ssl
import subprocess
import tempfile
import threading
import unittest
import zlib
from unittest import mock

from daemons import wait
from people import PeopleTest

BODY = os.urandom(3_000_000)


class Server(http.server.BaseHTTPRequestHandler):
    """Answer each path with BODY. Some words as the first part of the path select another answer."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        word = self.path.split("/")[1]
        if word == "missing":
            return self.send_error(404)
        if word == "members" and self.headers["Authorization"] != "Basic " + base64.b64encode(b"ann:canary").decode():
            return self.send_error(401)
        if word in ("elsewhere", "file", "loop"):
            self.send_response(302)
            target = {"elsewhere": "/there/target.bin", "file": "file:///etc/passwd", "loop": self.path}[word]
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(200)
        # The command names the file by its URL, and must ignore the name that the server suggests.
        self.send_header("Content-Disposition", "attachment; filename=../../evil")
        if word == "huge":
            self.send_header("Content-Length", str(1 << 50))
        elif word != "endless":
            self.send_header("Content-Length", str(0 if word == "empty" else len(BODY)))
        self.end_headers()
        if word == "empty":
            return None
        with contextlib.suppress(ConnectionError):      # the client may close the connection early
            self.wfile.write(BODY[:1_000_000])
            if word in ("silent", "endless"):
                self.wfile.flush()
                self.server.stop.wait(60)
            else:
                self.wfile.write(BODY[1_000_000:])
        return None

    def log_message(self, *_):
        pass


class FetchTest(PeopleTest):
    def setUp(self):
        self.into = pathlib.Path(tempfile.mkdtemp(dir=self.root.name))
        self.spool = pathlib.Path(tempfile.mkdtemp(dir=self.root.name))
        os.environ["TMPDIR"] = str(self.spool)
        self.addCleanup(os.environ.pop, "TMPDIR")
        self.url = self.serve()

    def serve(self, context=None):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        server.daemon_threads, server.stop = True, threading.Event()
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.stop.set)
        return f"http{'s' if context else ''}://127.0.0.1:{server.server_address[1]}"

    @property
    def type(self):
        return "--type", f"t{zlib.crc32(self._testMethodName.encode())}"

    def receive(self):
        return self.command(self.b, "receive", self.into, "--from", self.a_id, "--count", "1", *self.type)

    def refused(self, *words, code=1, said):
        found = self.a.run("send", *words, "bob", *self.type)
        self.assertEqual(found[0], code, found)
        self.assertIn(said, found[2])
        self.assertEqual(list(self.spool.iterdir()), [], "nothing is left")

    def arrives(self, *files, names):
        receiver = self.receive()
        sender = self.command(self.a, "send", *files, "bob", *self.type)
        self.assertEqual((sender.end(60), receiver.end(60)), (0, 0), (sender.heard, receiver.heard))
        self.assertEqual(sorted(path.name for path in self.into.iterdir()), sorted(names))
        wait("what was fetched is removed", lambda: not list(self.spool.iterdir()))

    def test_what_a_url_names_arrives_under_the_end_of_its_path(self):
        self.arrives(f"{self.url}/pictures/b%C3%BCcher.bin?size=large", names=["bücher.bin"])
        self.assertEqual((self.into / "bücher.bin").read_bytes(), BODY)

    def test_urls_and_files_go_together_also_of_one_server(self):
        (self.spool.parent / "own").write_text("own")
        self.arrives(f"{self.url}/a/one", self.spool.parent / "own", f"{self.url}/b/two", f"{self.url}/empty/none",
                     names=["one", "own", "two", "none"])
        self.assertEqual([(self.into / name).stat().st_size for name in ("one", "own", "none")], [len(BODY), 3, 0])

    def test_a_redirection_is_followed_and_the_name_stays(self):
        self.arrives(f"{self.url}/elsewhere/name.bin", names=["name.bin"])

    def test_standard_input_arrives_as_a_file(self):
        receiver = self.receive()
        sender = self.command(self.a, "send", "-", "bob", *self.type)
        sender.process.stdin.write(BODY)
        self.assertEqual((sender.end(60), receiver.end(60)), (0, 0), (sender.heard, receiver.heard))
        self.assertEqual((self.into / "stdin").read_bytes(), BODY)

    def test_https_needs_a_certificate_that_is_trusted(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.root.name))
        certificate = make_certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, folder / "key.pem")
        url = self.serve(context)
        self.refused(f"{url}/a", said="certificate")
        os.environ["CURL_CA_BUNDLE"] = str(certificate)
        self.addCleanup(os.environ.pop, "CURL_CA_BUNDLE")
        self.arrives(f"{url}/a", names=["a"])

    def test_a_redirection_to_a_file_of_this_machine_is_refused(self):
        self.refused(f"{self.url}/file/a", said="not supported")

    def test_redirections_without_an_end_are_given_up(self):
        self.refused(f"{self.url}/loop/a", said="10")

    def test_what_a_server_does_not_have_is_told_with_its_url(self):
        self.refused(f"{self.url}/missing/a", said=f"{self.url}/missing/a: The requested URL returned error: 404")

    def test_a_server_that_is_not_there_is_told_in_plain_words(self):
        self.refused("http://127.0.0.1:9/a", said="http://127.0.0.1:9/a: Failed to connect")

    def test_more_than_the_disk_has_room_for_is_refused_before_its_bytes(self):
        self.refused(f"{self.url}/huge/a", said="there is not enough space for it on this disk")

    def test_a_url_is_no_pattern(self):
        self.arrives(f"{self.url}/a/[1-3].bin", names=["[1-3].bin"])

    def test_an_interrupt_ends_the_fetching_and_leaves_nothing(self):
        for word in ("silent", "endless"):
            sender = self.command(self.a, "send", f"{self.url}/{word}/a", "bob", "--json", *self.type)
            wait("it is fetched", lambda: [line for line in sender.heard if json.loads(line).get("bytes", 0) > 0])
            sender.process.send_signal(signal.SIGINT)
            self.assertEqual(sender.end(), 5, sender.heard)
            self.assertEqual(list(self.spool.iterdir()), [])
            self.assertEqual(subprocess.run(["pgrep", "-f", f"{self.url}/{word}/a"], capture_output=True).stdout, b"")

    def test_a_password_in_a_url_is_refused_and_not_repeated(self):
        code, _, err = self.a.run("send", f"{self.url}/members/a".replace("//", "//ann:canary@"), "bob", *self.type)
        self.assertEqual(code, 1)
        self.assertIn(f"{self.url}/members/a: put user and password into ~/.netrc", err)
        self.assertNotIn("canary", err)

    def test_user_and_password_come_from_the_users_own_file(self):
        home = pathlib.Path(tempfile.mkdtemp(dir=self.root.name))
        (home / ".netrc").write_text("machine 127.0.0.1 login ann password canary\n")
        self.refused(f"{self.url}/members/a", said="401")
        with mock.patch.dict(os.environ, HOME=str(home)):
            self.arrives(f"{self.url}/members/a", names=["a"])

    def test_without_curl_it_is_said_what_is_missing(self):
        path = os.environ["PATH"]
        os.environ["PATH"] = "/nonexistent"
        try:
            self.refused(f"{self.url}/a", said="curl is required to fetch it; install curl")
        finally:
            os.environ["PATH"] = path


def make_certificate(folder):
    certificate = folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / "key.pem",
         "-out", certificate, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True)
    return certificate


if __name__ == "__main__":
    unittest.main()
