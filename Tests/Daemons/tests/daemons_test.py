"""Tests of the module `daemons`, which suites and measurements use."""
import os
import signal
import socket
import subprocess
import sys
import unittest

from daemons import BINARY, PORTS_OF_A_RUN, DaemonsTest, wait

# Reserves a block in a range of its own, because the suites that run at the same time take and free blocks of
# `daemons.PORTS`.
PORT = ("import daemons; daemons.PORTS = range(16_000, 20_000); guard, ports = daemons._own_ports();"
        " print(next(ports), flush=True)")


def another_run(program):
    """Start another Python process that uses the module `daemons`."""
    return subprocess.Popen([sys.executable, "-c", program, BINARY], stdout=subprocess.PIPE, text=True)


class DaemonsTests(DaemonsTest):
    def first_port(self):
        out, _ = another_run(PORT).communicate(timeout=30)
        return int(out)

    def test_a_block_of_ports_is_left_alone_while_anybody_listens_in_it(self):
        first = self.first_port() - 1
        for family, address, port in ((socket.AF_INET, "127.0.0.1", first + 3), (socket.AF_INET6, "::1", first + 399)):
            with socket.socket(family) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((address, port))
                listener.listen()
                self.assertGreaterEqual(self.first_port(), first + PORTS_OF_A_RUN)
        # A block that another run has reserved is also skipped if that run has not started a daemon yet.
        other = another_run(PORT + "; import time; time.sleep(60)")
        try:
            taken = int(other.stdout.readline())
            self.assertNotEqual(taken, self.first_port())
        finally:
            other.kill()
            other.communicate()

    def test_a_daemon_ends_with_the_run_that_started_it_however_that_ends(self):
        program = (f"import daemons, time; box = daemons.Daemon({self.root!r}, 'box').start();"
                   " print(box.process.pid, flush=True); time.sleep(60)")
        run = another_run(program)
        try:
            daemon = int(run.stdout.readline())
        finally:
            run.send_signal(signal.SIGKILL)
            run.communicate()
        wait("the daemon ends", lambda: not os.path.exists(f"/proc/{daemon}"))


if __name__ == "__main__":
    unittest.main()
