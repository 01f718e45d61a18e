"""The daemon under ordinary faults of its environment.

The faults are closed descriptors, outputs that block or fail, idle clients, files that vanish, and full disks. Real
daemons run on the loopback interface. Needs strace. Needs root, to act as other users and to mount disks.
"""
# seconds: 55
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

from daemons import BINARY, CLIENT_HELLO_PREFIX, DaemonsTest, wait

NOBODY = 65534
ID = "00112233445566778899aabbccddeeff"
class ProcessTest(DaemonsTest):
    def noisy(self, name="box"):
        """A daemon that reports a fault on standard error right after its start: its Wi-Fi socket does not exist."""
        box = self.daemon(name)
        with open(box.config) as file:
            text = file.read().replace("[wifi-direct]\nenabled = no",
                                       f"[wifi-direct]\nenabled = yes\ncontrol-socket = {self.path('absent')}")
        with open(box.config, "w") as file:
            file.write(text)
        return box

    def start(self, box, **options):
        box.process = subprocess.Popen([BINARY, "run", "--config", box.config], **options)
        wait(f"{box.name} answers", lambda: box.run("status")[0] == 0)
        return box

    def lives(self, box):
        self.assertIsNone(box.process.poll(), f"{box.name} ended")
        self.assertEqual(box.run("status")[0], 0)

    # Descriptors

    def test_a_standard_error_that_vanished_ends_nothing(self):
        box = self.noisy()
        reader, writer = os.pipe()
        os.close(reader)
        self.start(box, stderr=writer)
        os.close(writer)
        self.assertIn("no wpa_supplicant", box.log())
        self.lives(box)

    def test_an_abort_is_recorded_before_the_daemon_ends(self):
        box = self.start(self.noisy(), stderr=subprocess.PIPE)
        box.process.send_signal(signal.SIGABRT)
        _, told = box.process.communicate(timeout=10)
        self.assertEqual(box.process.returncode, -signal.SIGABRT)
        text = "aborted by a library, or by the watchdog of systemd (SIGABRT)"
        self.assertIn(f"causeway: panic: {text}", told.decode())
        self.start(box)
        self.assertIn(text, box.log())

    def test_a_standard_error_that_nobody_reads_is_not_waited_for(self):
        box = self.noisy()
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        self.start(box, stderr=writer)
        self.lives(box)
        os.close(reader)
        os.close(writer)

    def test_closed_descriptors_are_no_way_into_a_file(self):
        box = self.noisy()
        for _ in range(2):
            self.start(box, preexec_fn=lambda: os.closerange(0, 3))
            self.assertIn("no wpa_supplicant", box.log())
            with open(box.directory + "/run/journal", "rb") as file:
                self.assertNotIn(b"causeway: ", file.read())
            standard = [os.readlink(f"/proc/{box.process.pid}/fd/{number}") for number in range(3)]
            self.assertEqual(standard, ["/dev/null"] * 3)
            box.stop()

    def test_a_closed_output_of_a_command_is_a_failure(self):
        box = self.daemon("box")
        box.identity("new")
        done = subprocess.run([BINARY, "identity", "export", "--config", box.config], stderr=subprocess.PIPE, text=True,
                              timeout=10, preexec_fn=lambda: os.close(1))
        self.assertEqual((done.returncode, done.stderr), (1, "causeway: standard output: Bad file descriptor\n"))

    # Outputs

    def test_an_output_that_takes_nothing_is_a_failure_of_every_command(self):
        box = self.daemon("box").start()
        for words in (["identity", "export"], ["identity", "show"], ["status"], ["status", "--json"], ["log"], ["version"],
                      ["status", "--help"], ["--help"]):
            command = [BINARY, *words] + ([] if words[0] in ("version", "--help") else ["--config", box.config])
            with open("/dev/full", "w") as full:
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=10)
            self.assertEqual((done.returncode, done.stderr), (1, "causeway: standard output: No space left on device\n"), words)

    def test_who_leaves_a_pipe_gets_no_lecture(self):
        box = self.daemon("box").start()
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([BINARY, "log", "--config", box.config], stdout=writer, stderr=subprocess.PIPE, timeout=10)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (1, b""))

    # Paths that are not regular files

    def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(self):
        box = self.daemon("box").start()
        os.mkfifo(self.path("pipe"))
        none = "not a regular file"
        for words, status, said in (
                (["send", self.path("pipe"), "x", "--config", box.config], 1, "neither a file nor a folder"),
                (["status", "--config", self.path("pipe")], 2, none), (["run", "--config", self.path("pipe")], 2, none),
                (["log", "--journal", self.path("pipe")], 1, none)):
            done = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=10)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), (words, done.stderr))
            self.assertIn(said, done.stderr)

    # The control socket

    def test_clients_that_only_sit_there_do_not_keep_the_operator_out(self):
        box = self.daemon("box").start()
        for path in (self.root, box.directory, box.directory + "/run"):
            os.chmod(path, 0o755)
        done, tell = os.pipe()
        hold, leave = os.pipe()
        sitter = os.fork()
        if sitter == 0:
            os.setgroups([])
            os.setgid(0)
            os.setuid(NOBODY)
            held = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(40)]
            for number in held:
                number.connect(box.directory + "/run/control.sock")
            os.write(tell, b"!")
            os.close(leave)
            os.read(hold, 1)
            os._exit(0)
        os.close(tell)
        self.assertEqual(os.read(done, 1), b"!")
        try:
            self.assertEqual(box.run("identity", "revoke", ID)[0], 0)
            self.assertEqual(box.run("status")[0], 0)
        finally:
            for descriptor in (leave, hold, done):
                os.close(descriptor)
            os.waitpid(sitter, 0)

    # Files that vanish

    def test_a_journal_that_is_cut_ends_neither_daemon_nor_reader(self):
        box = self.daemon("box").start()
        reader = subprocess.Popen([BINARY, "log", "--follow", "--config", box.config], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        reader.stdout.readline()
        os.truncate(box.directory + "/run/journal", 0)
        for _ in range(5):
            self.knock(box)
        wait("the journal is there again", lambda: "its records are lost" in box.log())
        self.lives(box)
        time.sleep(1.1)
        self.assertIsNone(reader.poll())
        reader.terminate()
        self.assertIn("its records are lost", reader.communicate(timeout=10)[0])

    def test_a_runtime_directory_that_is_removed_comes_back(self):
        box = self.daemon("box").start()
        os.unlink(box.directory + "/run/control.sock")
        wait("the socket is there again", lambda: box.run("status")[0] == 0)
        shutil.rmtree(box.directory + "/run")
        wait("the directory is there again", lambda: box.run("status")[0] == 0)
        log = box.log()
        self.assertIn(" started: epoch", log)
        self.assertIn("the journal file was removed or truncated; it is restored", log)
        self.assertEqual(log.count("control: the socket was removed"), 2, log)
        self.assertEqual(log.count("api: the socket was removed"), 1, log)

    # A signal

    def test_hangup_reads_the_configuration_again_and_refuses_a_bad_one(self):
        box = self.daemon("box", extra="[journal]\nlevel = notice\n").start()
        with open(box.config) as file:
            good = file.read()

        def reload(text, expected):
            with open(box.config, "w") as file:
                file.write(text)
            box.process.send_signal(signal.SIGHUP)
            wait(expected, lambda: expected in subprocess.run(
                [BINARY, "log", "--journal", box.directory + "/run/journal"], capture_output=True, text=True).stdout)

        reload(good.replace("level = notice", "level = loud"), "configuration: not reloaded: ")
        with open(box.config, "w") as file:
            file.write(good)
        self.assertIn("not reloaded", box.run("status")[1])
        self.assertNotIn("debug ", box.log("debug"))
        reload(good.replace("level = notice", "level = debug").replace("loopback = yes", "loopback = no"),
               "these apply at the next start: [ip] loopback")
        self.assertNotIn("not reloaded", box.run("status")[1])
        self.assertIn("debug ", box.log("debug"))
        os.makedirs(self.path("anchors"))
        with open(self.path("anchors/ca.pem"), "w") as file:
            file.write("no certificate\n")
        reload(good.replace("[trust]\n", f"[trust]\nanchors = {self.path('anchors')}\n"), "neither a certificate nor a CRL")
        self.lives(box)

    def test_a_reload_says_whether_it_was_done(self):
        box = self.daemon("box", extra="[journal]\nlevel = notice\n").start()
        with open(box.config) as file:
            good = file.read()
        code, out, _ = box.run("reload")
        self.assertEqual((code, out), (0, "reloaded: 0 anchors, 0 revocation lists\n"))
        with open(box.config, "w") as file:
            file.write(good.replace("level = notice", "level = loud"))
        code, out, err = box.run("reload", "--socket", box.directory + "/run/control.sock")
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, "not reloaded: .*box.conf:[0-9]+: .*loud")
        self.assertIsNone(box.process.poll())
        with open(box.config, "w") as file:
            file.write(good)
        self.assertEqual(box.run("reload")[0], 0)
        self.assertNotIn("not reloaded", box.run("status")[1])

    def test_the_service_manager_hears_of_each_state(self):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(self.path("notify"))
        manager.settimeout(15)

        def hears(*wanted):
            for state in wanted:
                while (said := manager.recv(4096).decode().split("\n")[0]) != state:
                    self.assertIn(said.split("=")[0], ("WATCHDOG", "STATUS"), said)

        box = self.daemon("box")
        self.start(box, env={**os.environ, "NOTIFY_SOCKET": self.path("notify")})
        hears("READY=1", "WATCHDOG=1")
        box.process.send_signal(signal.SIGHUP)
        hears("RELOADING=1", "READY=1", "WATCHDOG=1")
        box.process.send_signal(signal.SIGTERM)
        hears("STOPPING=1")
        self.assertEqual(box.process.wait(10), 0)

    # The disk

    def starts(self, box, break_disk, mend_disk):
        """Start the box four times with its state on a separate disk: before the disk fails, twice while it fails, and
        after it works again. Checks that the epoch is higher at each start."""
        os.makedirs(box.state, exist_ok=True)
        holder = subprocess.Popen(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs "$1" && echo ok && exec cat',
                                   "sh", box.state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(holder.stdout.readline(), "ok\n")
        inside = ["nsenter", "-t", str(holder.pid), "-m"]
        epochs = []
        try:
            for change in (None, break_disk, None, mend_disk):
                if change:
                    subprocess.run(inside + ["sh", "-c", change, "sh", box.state], check=True)
                box.process = subprocess.Popen(inside + [BINARY, "run", "--config", box.config], stderr=subprocess.DEVNULL)
                wait("the box answers", lambda: box.process.poll() is not None or box.run("status")[0] == 0)
                self.assertIsNone(box.process.poll(), "the box does not start")
                epochs.append(box.status["box"]["epoch"])
                if len(epochs) in (2, 3):
                    self.assertIn(box.state + "/state: ", box.run("status")[1])
                    self.assertIn(box.state + "/state: ", box.log("error"))
                box.stop()
        finally:
            holder.communicate("", timeout=10)
        self.assertEqual(epochs, sorted(set(epochs)))

    def test_a_full_state_directory_does_not_keep_the_box_from_starting(self):
        self.starts(self.daemon("box"), 'dd if=/dev/zero of="$1/filler" bs=1k 2>/dev/null; rm -f "$1/none"', 'rm "$1/filler"')

    def test_a_state_directory_that_became_read_only_does_not_either(self):
        self.starts(self.daemon("box"), 'mount -o remount,ro "$1"', 'mount -o remount,rw "$1"')

    def test_a_slow_disk_holds_up_nobody_but_who_asked(self):
        box = self.daemon("box").start()
        tracer = subprocess.Popen(
            ["strace", "-f", "-o", "/dev/null", "-p", str(box.process.pid), "-e", "trace=fsync",
             "-e", "inject=fsync:delay_enter=2000000"], stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("attached", tracer.stderr.readline())
            begin = time.monotonic()
            asker = subprocess.Popen([BINARY, "identity", "trust", ID, "--config", box.config], stdout=subprocess.PIPE, text=True)
            time.sleep(0.5)
            answered = 0
            while asker.poll() is None:
                before = time.monotonic()
                self.assertEqual(box.run("status")[0], 0)
                self.assertLess(time.monotonic() - before, 1.5)
                answered += 1
            self.assertIn(ID, asker.communicate()[0])
            self.assertEqual(asker.returncode, 0)
            self.assertGreater(time.monotonic() - begin, 3, "answered before it was on disk")
            self.assertGreater(answered, 1)
        finally:
            tracer.terminate()
            tracer.communicate(timeout=10)
        self.assertIn(ID, box.identity("show"))

    # The log

    def knock(self, box):
        """Open a connection, send the first eleven bytes of a ClientHello, and close the connection."""
        with socket.create_connection(("127.0.0.1", box.port), timeout=5) as stream:
            stream.sendall(CLIENT_HELLO_PREFIX)

    def test_a_flood_of_strangers_leaves_the_log_readable(self):
        box = self.daemon("box", extra="[journal]\nsize = 64\n").start()
        for number in range(1500):
            self.knock(box)
            if number % 16 == 0:
                time.sleep(0.02)
        self.lives(box)
        box.stop()
        log = box.log()
        self.assertTrue(" started: epoch" in log, log[:300])
        self.assertTrue(" more in " in log, log[:300])
        self.assertLess(log.count("\n"), 100)


if __name__ == "__main__":
    unittest.main()
