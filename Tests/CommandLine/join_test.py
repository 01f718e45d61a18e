#!/usr/bin/env python3
"""`causeway join` with a fake daemon. The tests read the QR code that it draws with ZBar. usage: join_test.py BINARY"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

# Debian's package is made for Debian's Python, but any Python of the same version can load it.
sys.path.append("/usr/lib/python3/dist-packages")
import zbar

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/x86_64/causeway"
ID = "a11ce000000000010000000000000001"
ATTIC = {"name": "attic", "id": ID, "ssid": "DIRECT-cw-attic", "passphrase": "correct horse", "address": "192.168.49.1",
         "frequency": 2437}
# For each character of the drawing: 1 for a half that is light, the upper half first.
HALVES = {"█": (1, 1), "▀": (1, 0), "▄": (0, 1), " ": (0, 0)}
MODULE_PIXELS = 4


def read_code(text):
    """The texts of the QR codes that ZBar finds in a drawing. The drawn parts of the characters are light."""
    lines = [line for line in text.splitlines() if line and set(line) <= set(HALVES)]
    rows = [[HALVES[character][half] for character in line] for line in lines for half in (0, 1)]
    width, height = len(rows[0]) * MODULE_PIXELS, len(rows) * MODULE_PIXELS
    pixels = b"".join(bytes(255 * light for light in row for _ in range(MODULE_PIXELS)) * MODULE_PIXELS for row in rows)
    scanner = zbar.ImageScanner()
    image = zbar.Image(width, height, "Y800", pixels)
    scanner.scan(image)
    return [symbol.data for symbol in image]


class Join(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = directory.name + "/control.sock"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.listener.close)
        self.listener.bind(self.path)
        self.listener.listen(1)

    def join(self, *words, answers=None, invitation=ATTIC, **options):
        """Run the command while a fake daemon answers with `answers`, or with `invitation`. Returns exit code, output and errors."""
        if answers is None:
            answers = [b"S" + json.dumps(invitation).encode(), b"S"]

        def answer():
            client, _ = self.listener.accept()
            with client:
                if client.recv(100) == b"J":
                    for packet in answers:
                        client.send(packet)

        thread = threading.Thread(target=answer)
        thread.start()
        options = {"stdout": subprocess.PIPE, **options}
        done = subprocess.run([BINARY, "join", "--socket", self.path, *words], stderr=subprocess.PIPE, timeout=30, **options)
        thread.join()
        return done.returncode, (done.stdout or b"").decode(), done.stderr.decode()

    def on_terminal(self, environment, columns=80):
        master, slave = os.openpty()
        subprocess.run(["stty", "columns", str(columns), "rows", "50"], stdin=slave, check=True)
        code, _, err = self.join(stdout=slave, env={**os.environ, **environment})
        os.close(slave)
        out = b""
        while True:
            try:
                out += os.read(master, 65536)
            except OSError:
                break
        os.close(master)
        self.assertEqual((code, err), (0, ""))
        return out.decode().replace("\r\n", "\n")

    def test_the_code_is_read_by_a_foreign_decoder(self):
        code, out, err = self.join()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(read_code(out), [f"WIFI:T:WPA;S:DIRECT-cw-attic;P:correct horse;CW:{ID};;"])

    def test_separators_within_name_and_passphrase_are_escaped(self):
        odd = {**ATTIC, "ssid": "DIRECT-ab;ö\"", "passphrase": "\\;,:\"" * 12 + "xyz"}
        _, out, _ = self.join(invitation=odd)
        passphrase = "\\\\\\;\\,\\:\\\"" * 12 + "xyz"
        self.assertEqual(read_code(out), [f"WIFI:T:WPA;S:DIRECT-ab\\;ö\\\";P:{passphrase};CW:{ID};;"])
        self.assertLessEqual(max(map(len, out.splitlines())), 80)

    def test_the_fingerprint_can_be_left_out_of_the_code(self):
        _, out, _ = self.join("--network-only")
        self.assertEqual(read_code(out), ["WIFI:T:WPA;S:DIRECT-cw-attic;P:correct horse;;"])

    def test_who_cannot_scan_reads_the_same_as_text(self):
        _, out, _ = self.join()
        self.assertEqual(out.splitlines()[:6], [
            "network      DIRECT-cw-attic", "passphrase   correct horse", "box          attic", f"fingerprint  {ID}",
            "address      192.168.49.1", ""])

    def test_json_is_the_answer_of_the_daemon(self):
        self.assertEqual(json.loads(self.join("--json")[1]), ATTIC)

    def test_a_refusal_is_one_line(self):
        code, out, err = self.join(answers=[b"T\0\x04no!!"])
        self.assertEqual((code, out, err), (1, "", "causeway: no!!\n"))

    def test_a_name_steers_no_terminal(self):
        _, out, _ = self.join(invitation={**ATTIC, "name": "at\x1b[2Jtic", "ssid": "DIRECT-\x07"})
        self.assertIn("network      DIRECT-?\n", out)
        self.assertIn("box          at?[2Jtic\n", out)

    def test_a_terminal_is_told_the_colours_and_nothing_else_is(self):
        coloured = self.on_terminal({"TERM": "xterm"})
        self.assertEqual(coloured.count("\x1b[40;37;1m"), coloured.count("\x1b[0m"))
        drawn = coloured.replace("\x1b[40;37;1m", "").replace("\x1b[0m", "")
        self.assertNotEqual(drawn, coloured)
        self.assertEqual(self.join()[1], drawn)
        self.assertEqual(self.on_terminal({"TERM": "xterm", "NO_COLOR": "1"}), drawn)
        self.assertEqual(self.on_terminal({"TERM": "dumb"}), drawn)

    def test_a_narrow_terminal_gets_the_text_alone(self):
        out = self.on_terminal({"TERM": "xterm"}, columns=40)
        self.assertEqual(out.splitlines()[-1], "The QR code needs a wider terminal.")
        self.assertNotIn("█", out)


if __name__ == "__main__":
    unittest.main()
