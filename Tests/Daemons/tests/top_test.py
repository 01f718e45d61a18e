"""`causeway top` on pseudo-terminals, whose output a terminal emulator (pyte) reads.

Real daemons run on the loopback interface."""
# seconds: 60
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from daemons import BINARY, DaemonsTest, wait
from people import Terminal

# Debian installs pyte for its own Python. The library pyte is pure Python, so other versions of Python can import pyte,
# too.
sys.path.append("/usr/lib/python3/dist-packages")
import pyte

FOOT = " q quit  s sort  space pause  ? help"


class Screen(Terminal):
    """A terminal whose `screen` contains all lines as a person sees them."""

    def __init__(self, command, columns=80, rows=24, environment=None):
        self.pyte = pyte.Screen(columns, rows)
        self.stream = pyte.Stream(self.pyte)
        super().__init__(command, columns, rows, environment)

    def _show(self, text):
        self.raw += text
        self.stream.feed(text)
        self.screen = [line.rstrip() for line in self.pyte.display]

    def resize(self, columns, rows):
        super().resize(columns, rows)
        self.rows = rows
        self.pyte.resize(rows, columns)

    def is_left(self):
        """Whether the command restored the terminal: the cursor is visible, the main screen is shown, and the modes are
        as before."""
        return self.raw.endswith("\x1b[m\x1b[?25h\x1b[?1049l") and self.is_restored()


class TopTest(DaemonsTest):
    def box(self, *others, **options):
        box = self.daemon("box", **options)
        box.start()
        for other in others:
            self.daemon(other, box).start()
        wait("they are linked", lambda: box.neighbours() == sorted(others))
        return box

    def top(self, daemon, *words, **options):
        screen = Screen([BINARY, "top", "--config", daemon.config, *words], **options)
        self.addCleanup(screen.close)
        return screen

    def shown(self, *others, **options):
        box = self.box(*others)
        screen = self.top(box, **options)
        screen.wait_line("forwarded 0 frames/s")
        return box, screen

    def state(self, screen):
        with open(f"/proc/{screen.process.pid}/stat") as file:
            return file.read().split()[2]

    def whole(self, screen):
        """Check that the page fills the screen: its title is in the first line, and its keys are in the last line."""
        self.assertEqual(len(screen.screen), screen.rows)
        self.assertTrue(screen.screen[0].startswith("box "), screen.screen)
        self.assertTrue(screen.screen[-1].startswith(FOOT[:screen.columns - 1]), screen.screen)
        self.assertNotIn("\n", screen.raw)

    def test_a_page_fits_80_by_24(self):
        box, screen = self.shown("anna", "bert")
        screen.wait("rates", lambda: re.search(r"anna .* B ", "\n".join(screen.screen)))
        self.whole(screen)
        self.assertIn(box.status["box"]["id"][:8], screen.screen[0])
        self.assertIn("2 peers, 2 links", screen.screen[0])
        self.assertEqual(screen.screen[2], "no alarms, no faults")
        self.assertRegex("\n".join(screen.screen), r"LINK  NEIGHBOUR +BEARER +IN/S +OUT/S +RTT +LOSS +QUEUE\n")
        self.assertRegex("\n".join(screen.screen), r"(?m)^\d     bert +loopback +\d.* B +\d.* B +\d.* ms +\S+( %)? +0 B$")

    def test_other_sizes_are_filled_too(self):
        box, screen = self.shown("anna", columns=40, rows=10)
        self.whole(screen)
        screen.type("\x1b[6~")
        screen.wait_line("^anna ")
        for columns, rows in ((200, 60), (20, 6), (80, 24)):
            screen.resize(columns, rows)
            screen.wait(f"{columns}×{rows}", lambda: len(screen.screen) == rows and screen.screen[-1].startswith(FOOT[:columns - 1]))
            self.whole(screen)
        screen.resize(1, 1)
        screen.read(0.5)
        screen.type("q")
        self.assertEqual(screen.end(), 0)

    def test_keys(self):
        box, screen = self.shown("anna")
        screen.type("s")
        screen.wait_line("; by loss$")
        screen.type(" ")
        screen.wait_line("; PAUSED$")
        screen.type(" ?")
        screen.wait_line("^q, \\^C +quit")
        screen.type("?")
        screen.wait_line("^LINK +NEIGHBOUR")
        screen.type("q")
        self.assertEqual(screen.end(), 0)
        self.assertTrue(screen.is_left(), screen.raw[-60:])

    def test_whatever_ends_it_the_terminal_is_as_before(self):
        box = self.box()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            screen = self.top(box)
            screen.wait_line("no alarms")
            if number == signal.SIGINT:
                screen.type("\x03")
            else:
                screen.process.send_signal(number)
            self.assertEqual(screen.end(), 0, number)
            self.assertTrue(screen.is_left(), (number, screen.raw[-60:]))

    def test_it_can_be_stopped_and_goes_on(self):
        box, screen = self.shown()
        screen.type("\x1a")
        wait("it is stopped", lambda: self.state(screen) == "T")
        while screen.read(0.2):
            pass
        self.assertTrue(screen.is_left(), screen.raw[-60:])
        screen.pyte.reset()
        screen.screen = []
        screen.process.send_signal(signal.SIGCONT)
        screen.wait_line("no alarms")
        self.assertFalse(screen.is_restored())
        self.whole(screen)
        screen.type("q")
        self.assertEqual(screen.end(), 0)

    def test_a_daemon_that_dies_is_said_and_its_next_one_is_found(self):
        box, screen = self.shown()
        box.stop()
        screen.wait_line("^NO DAEMON for \\d+ s: ")
        self.assertIn("0 links", screen.screen[0])
        box.start()
        screen.wait_line("^no alarms")
        self.assertIsNone(screen.process.poll())

    def test_keys_work_while_the_daemon_hangs(self):
        box, screen = self.shown()
        box.process.send_signal(signal.SIGSTOP)
        try:
            screen.wait_line("^NO DAEMON for .*the daemon does not answer", 10)
            begin = time.monotonic()
            screen.type("q")
            self.assertEqual(screen.end(), 0)
            self.assertLess(time.monotonic() - begin, 2)
        finally:
            box.process.send_signal(signal.SIGCONT)

    def test_a_terminal_that_does_not_read_holds_up_no_signal(self):
        box, screen = self.shown(columns=200, rows=60)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            screen.type("??\x0c")
            time.sleep(0.01)
        screen.process.terminate()
        self.assertEqual(screen.process.wait(5), 0)

    def test_a_terminal_that_is_gone_ends_it(self):
        box, screen = self.shown()
        os.close(screen.open[1])
        os.close(screen.open[0])
        screen.open = ()
        self.assertIsNotNone(screen.process.wait(5))

    def test_without_colours(self):
        box = self.box()
        screen = self.top(box, environment={"NO_COLOR": "1"})
        screen.wait_line("no alarms")
        self.assertNotRegex(screen.raw, r"\x1b\[[0-9;]+m")

    def test_forwarded_traffic_has_its_talkers(self):
        box = self.box("anna", "bert")
        anna = self.path("anna/conf")
        ping = subprocess.Popen([BINARY, "ping", "bert", "--count", "100", "--config", anna], stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (ping.kill(), ping.wait()))
        screen = self.top(box)
        screen.wait_line("^SOURCE +ID +FORWARDED/S +BYTES")
        screen.wait_line(r"^anna +[0-9a-f]{8} +\d+ B +\d")

    # Without a screen

    def lines(self, box, *words):
        code, out, err = box.run("top", *words)
        self.assertEqual((code, err), (0, ""))
        return out

    def test_once_is_a_table(self):
        box = self.box("anna")
        out = self.lines(box, "--once")
        self.assertRegex(out, r"^box [0-9a-f]{8}  up .*, 1 peer, 1 link\nforwarded 0 frames/s, 0 B/s; .*\nno alarms, no faults\n\nBEARER ")
        self.assertRegex(out, r"(?m)^\d     anna +loopback ")
        self.assertNotIn("\x1b", out)

    def test_json_is_an_object_a_line(self):
        box = self.box("anna")
        objects = [json.loads(line) for line in self.lines(box, "--once", "--json").splitlines()]
        self.assertEqual([each["event"] for each in objects], ["box", "bearer", "link"])
        self.assertEqual((objects[0]["peers"], objects[0]["bytes_forwarded_per_second"]), (1, 0))
        link = objects[2]
        self.assertEqual((link["name"], link["bearer"], link["state"]), ("anna", "loopback", "up"))
        self.assertIn("bytes_received_per_second", link)
        self.assertIn("segments_sent", box.status["links"][0])

    def test_a_pipe_gets_tables_until_nobody_reads_it(self):
        box = self.box("anna")
        with subprocess.Popen([BINARY, "top", "--config", box.config], stdout=subprocess.PIPE, text=True) as top:
            self.addCleanup(top.kill)
            lines = [line for line, _ in zip(top.stdout, range(12))]
            self.assertEqual(sum(line.startswith("box ") for line in lines), 2, lines)
            top.stdout.close()
            self.assertIsNotNone(top.wait(5))

    def test_without_a_daemon_there_is_no_table(self):
        box = self.daemon("box")
        code, out, err = box.run("top", "--once")
        self.assertEqual((code, out), (3, ""))
        self.assertRegex(err, r"^causeway: no daemon answers at .*\n$")

    def test_a_terminal_that_cannot_move_its_cursor_gets_tables(self):
        box = self.box()
        screen = Screen([BINARY, "top", "--once", "--config", box.config], environment={"TERM": "dumb"})
        self.addCleanup(screen.close)
        self.assertEqual(screen.end(), 0)
        self.assertNotIn("\x1b", screen.raw)


if __name__ == "__main__":
    unittest.main()
