"""`causeway ping` and `causeway trace`, with real daemons.

The network is near – box – far, on the loopback interface."""
import json
import os
import re
import signal
import time
import unittest

from daemons import DaemonsTest, wait


class ProbeTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        self.box = self.daemon("box").start()
        self.near = self.daemon("near", self.box).start()
        self.far = self.daemon("far", self.box).start()
        wait("they see each other", lambda: "far" in self.near.run("peers")[1] and "near" in self.far.run("peers")[1])

    def test_a_peer_behind_a_box_answers_each_question(self):
        code, out, err = self.near.run("ping", "far", "--count", "2")
        self.assertEqual((code, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(lines[0], f"far ({self.far.id[:8]}): loopback, loopback")
        self.assertRegex(lines[1], r"^1  \d+\.\d+ ms$")
        self.assertRegex(lines[2], r"^2  \d+\.\d+ ms$")
        self.assertRegex(lines[3], r"^2 of 2 answers; minimum .* ms, median .* ms, maximum .* ms$")

    def test_ping_writes_json_lines(self):
        code, out, _ = self.near.run("ping", self.far.id[:6], "--count", "2", "--json")
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((code, [line["event"] for line in lines]), (0, ["answer", "answer", "end"]))
        self.assertEqual((lines[2]["asked"], lines[2]["answered"]), (2, 2))
        self.assertLessEqual(lines[2]["microseconds_least"], lines[0]["microseconds"])

    def test_trace_shows_each_box_on_the_way(self):
        code, out, err = self.near.run("trace", "far")
        self.assertEqual((code, err), (0, ""))
        rows = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]
        self.assertEqual([row[:3] for row in rows], [["1", f"box ({self.box.id[:8]})", "loopback"],
                                                     ["2", f"far ({self.far.id[:8]})", "loopback"]])
        self.assertTrue(all(re.fullmatch(r"\d+\.\d+ ms", row[3]) for row in rows), rows)

    def test_trace_writes_json_lines(self):
        code, out, _ = self.near.run("trace", "far", "--json")
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((code, [(line["event"], line["number"], line["name"], line["id"], line["bearer"])
                                 for line in lines]),
                         (0, [("hop", 1, "box", self.box.id, "loopback"), ("hop", 2, "far", self.far.id, "loopback")]))

    def test_a_name_that_nobody_has_fails_at_once(self):
        start = time.monotonic()
        code, out, err = self.near.run("ping", "fra")
        self.assertEqual((code, out), (4, ""))
        self.assertIn("no peer “fra”", err)
        self.assertLess(time.monotonic() - start, 3)

    def test_a_peer_that_stands_still_does_not_answer(self):
        self.assertEqual(self.near.run("ping", "far", "--count", "1")[0], 0)
        os.kill(self.far.process.pid, signal.SIGSTOP)
        try:
            code, out, _ = self.near.run("ping", "far", "--count", "1", "--timeout", "2")
        finally:
            os.kill(self.far.process.pid, signal.SIGCONT)
        self.assertEqual(code, 4)
        self.assertRegex(out, r"(?m)^1  no answer in time$")
        self.assertRegex(out, r"(?m)^0 of 1 answers$")

    def test_boxes_that_do_not_agree_on_encryption_say_so(self):
        clear = self.daemon("clear", self.box, extra="[peer]\nencryption = none\n").start()
        wait("it is seen", lambda: "clear" in self.near.run("peers")[1])
        for words in (["ping", "clear", "--count", "1"], ["trace", "clear"]):
            code, out, _ = self.near.run(*words)
            self.assertEqual(code, 6, (words, out))
            self.assertIn("do not agree on [peer] encryption", out)
        clear.stop()

    def test_a_peer_that_is_stopped_by_its_user_is_away_soon(self):
        self.far.stop()
        wait("it is gone", lambda: "far" not in self.near.run("peers")[1])
        code, _, err = self.near.run("trace", "far")
        self.assertEqual(code, 4)
        self.assertIn("no peer “far”", err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
