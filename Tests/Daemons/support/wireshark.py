"""pcap files with frames of Causeway, and the fields that tshark finds in them with docs/wireshark/causeway.lua."""
import os
import shutil
import struct
import subprocess
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../docs/wireshark/causeway.lua")
FILE_HEADER = struct.pack(">IHHIIII", 0xA1B2_3C4D, 2, 4, 0, 0, 16 + 48 + 16_640, 147)
NOBODY = 65534


class Record:
    """One record of a capture file."""

    def __init__(self, data):
        seconds, nanoseconds, included, self.length = struct.unpack_from(">IIII", data)
        self.time = seconds + nanoseconds / 1e9
        self.data = data[16:16 + included]
        assert len(self.data) == included
        self.version, self.is_sent, self.link, self.bearer, self.flags, *zeros = self.data[:8]
        assert self.version == 1 and not any(zeros)
        self.neighbour, self.header, self.payload = self.data[8:16], self.data[16:64], self.data[64:]

    @property
    def type(self):
        return self.header[1]

    @property
    def identifier(self):
        return self.header[24:48]


def records(data):
    """All records of a capture file."""
    assert data[:24] == FILE_HEADER, data[:24]
    found, offset = [], 24
    while offset < len(data):
        found.append(Record(data[offset:]))
        offset += 16 + len(found[-1].data)
    return found


def record(frame, captured=None, sent=True, link=3, bearer=4, neighbour=bytes(range(8))):
    data = bytes([1, sent, link, bearer, 0, 0, 0, 0]) + neighbour + frame[:captured]
    return struct.pack(">IIII", 1_700_000_000, 5, len(data), 16 + len(frame)) + data


def tshark(capture, *options):
    """Run tshark. Returns its output. tshark runs as another user, because it silently ignores the script as root."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        script, path = os.path.join(directory, "causeway.lua"), os.path.join(directory, "capture")
        shutil.copy(SCRIPT, script)
        with open(path, "wb") as file:
            file.write(capture)
        for name in (script, path):
            os.chmod(name, 0o644)
        done = subprocess.run(["tshark", "-r", path, "-X", f"lua_script:{script}", *options], capture_output=True, text=True, timeout=60,
                              user=NOBODY, group=NOBODY, extra_groups=[], cwd=directory, env={**os.environ, "HOME": directory})
    assert done.returncode == 0 and "Lua" not in done.stderr + done.stdout, done.stderr + done.stdout
    return done.stdout


def fields(capture, *names):
    """The values of these fields, as one tuple for each frame. Several values of one field are separated by commas."""
    options = [word for name in names for word in ("-e", name)]
    return [tuple(line.split("\t")) for line in tshark(capture, "-T", "fields", *options).splitlines()]
