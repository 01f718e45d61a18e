"""The output of `status`, `log` and similar commands, as an operator reads it over SSH."""
import json
import os
import socket
import threading
import unittest

from daemons import DaemonsTest, wait

COLUMNS = 80


class StatusTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        self.box = self.daemon("box").start()
        self.far = self.daemon("the machine below the stairs", self.box).start()
        wait("it is a peer", lambda: "stairs" in self.box.run("peers")[1])

    def test_what_is_printed_fits_80_columns_without_a_terminal(self):
        for command in ("status", "peers", "links", "radios", "routes", "doctor", "leds", "version"):
            for line in self.box.run(command)[1].splitlines():
                self.assertLessEqual(len(line), COLUMNS, f"{command}: {line}")

    def test_the_log_names_a_peer_that_has_left_also_when_the_daemon_is_dead(self):
        self.far.stop()
        wait("it has left", lambda: "vanished" in self.box.log())
        self.box.process.kill()
        self.box.process.wait()
        peer = f"peer {self.far.id[:8]}… (the machine below the st)"
        lines = self.box.log().splitlines()
        self.assertTrue(any(line.endswith(f"{peer} vanished") for line in lines), lines)
        self.assertTrue(any(f"up over loopback with {self.far.id[:8]}… (the machine below the st)" in line for line in lines), lines)

    def test_the_log_is_one_json_object_a_line(self):
        code, out, err = self.box.run("log", "--json", "--level", "notice")
        records = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((code, err), (0, ""))
        first = records[0]
        self.assertEqual((first["event"], first["level"], first["sequence"]), ("record", "notice", 1))
        self.assertRegex(first["text"], f"^box {self.box.id} started: epoch ")
        self.assertTrue(any("link" in record for record in records))
        plain = self.box.run("log", "--level", "notice")[1].splitlines()
        self.assertEqual([line.split("  ", 1)[0].split()[0] for line in plain], [record["time"] for record in records])

    def test_an_answer_that_is_no_status_is_refused_in_one_line(self):
        # The daemon's JSON contains only integers, so the command does not parse other numbers.
        for answer in (b'{"name": "box", "uptime": 1.5}', b'{"uptime": 1e999}', b'[1', b'"\xff"'):
            path = f"{self.box.directory}/other.sock"
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
                server.bind(path)
                server.listen()
                daemon = threading.Thread(target=self.answer, args=(server, answer))
                daemon.start()
                code, out, err = self.box.run("status", "--socket", path)
                daemon.join()
            os.unlink(path)
            self.assertEqual((code, out, err.count("\n")), (1, "", 1), err)
            self.assertIn("not understood", err)

    def answer(self, server, answer):
        with server.accept()[0] as client:
            client.recv(512)
            client.send(b"S" + answer)
            client.send(b"S")


if __name__ == "__main__":
    unittest.main()
