"""File transfers between members, for applications in Python. Written from docs/resources.md, on top of causeway.py.

    transfers = Transfers(session, "in", accept=lambda incoming: None).start()
    transfers.send(["a.png", "b.png"], address)         # waits; a verdict for each file

It transfers files, not folders. After a break of the path a transfer resumes, and received bytes are not sent again. Nothing
survives a restart.
"""
import contextlib
import hashlib
import os
import queue
import re
import shutil
import struct
import threading
import time

from causeway import CausewayError, Code, IncomingStream, Reader, StreamEnd, StreamError, text

OFFER, PROMPT, ANSWER, MANIFEST, HELD, READY, BEGIN, BYTES, ROOT, SKIP, VERDICT, COMPARE, LEAVES, CANCEL = range(1, 15)
ACCEPTED, KNOWN, DECLINED, NO_SPACE, TOO_LARGE, TIMED_OUT, BUSY = range(7)      # answers
STORED, DIFFERS, NOT_SENT = range(3)                                            # verdicts
CANNOT_WRITE, BROKEN = 1, 3                                                     # reasons to cancel
LEAF, PIECE = 1 << 20, 65_536               # bytes of a file in one leaf, and in one record
RECORD_MAX = 66_000
FILES_MAX, ENTRY_MAX = 1_000, 266           # files of an offer, sent or received; bytes of an entry in the manifest
AT_ONCE_MAX = 8             # incoming transfers; a node gets at most as many as are left free
KEPT_MAX = 32               # incoming transfers that can resume after a break
OFFER_SECONDS, SILENCE_SECONDS, BREAK_SECONDS, ATTEMPTS_MAX = 30, 120, 3_600, 20
BREAKS = (None, StreamEnd.LOST, StreamEnd.NO_PLACE)             # ends of a stream after which the sender tries again
STREAM = re.compile("causeway:(?:resource:([0-9a-f]{16})|answer):([0-9a-f]{16})")
ILLEGAL = re.compile("[/\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class Refused(CausewayError):
    """The other application declined an offer, or cancelled a transfer."""

    def __init__(self, text):
        super().__init__(Code.NOT_ALLOWED, text or "declined")


class Tree:
    """The Merkle tree of a file whose bytes are added in pieces (RFC 6962, section 2.1)."""

    def __init__(self):
        self.whole, self.bytes, self._last = [], 0, None

    def add(self, data):
        data = memoryview(data)
        while data:
            self._last = self._last or hashlib.sha256(b"\0")
            part = data[:LEAF - self.bytes % LEAF]
            self._last.update(part)
            self.bytes, data = self.bytes + len(part), data[len(part):]
            if self.bytes % LEAF == 0:
                self.whole.append(self._last.digest())
                self._last = None

    def cut(self, leaves):
        del self.whole[leaves:]
        self.bytes, self._last = leaves * LEAF, None

    @property
    def leaves(self):
        return self.whole + ([self._last.digest()] if self._last else [])

    @property
    def root(self):
        return _root(self.leaves)


def _root(hashes):
    if len(hashes) < 2:
        return hashes[0] if hashes else hashlib.sha256().digest()
    left = 1 << (len(hashes) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + _root(hashes[:left]) + _root(hashes[left:])).digest()


def record(kind, *fields):
    body = bytes([kind]) + b"".join(fields)
    return struct.pack(">I", len(body)) + body


def _cut(*streams):
    for stream in streams:
        if stream and stream.end is None:
            with contextlib.suppress(CausewayError):
                stream.reset()


def _refuse(stream):
    with contextlib.suppress(CausewayError):        # the stream may have ended already
        stream.refuse()


def _short(why):
    """The text in the legal form of a record: no control characters, and at most 200 bytes."""
    return ILLEGAL.sub(" ", why).encode()[:200].decode(errors="ignore")


def _say(stream, reason, why):
    """Cancels a transfer with an explanation, if the stream is still open."""
    with contextlib.suppress(CausewayError):
        stream.write(record(CANCEL, bytes([reason]), text(_short(why))), timeout=2)
        stream.finish(timeout=2)


def _find_reason(records):
    """Raises Refused if the member sent a reason before it reset its stream."""
    try:
        while True:
            records.next(2, HELD, READY, VERDICT, LEAVES)
    except Refused:
        raise
    except (ValueError, CausewayError):
        pass


class _Records:
    """Splits an incoming stream into records."""

    def __init__(self, stream):
        self._stream, self._bytes = stream, bytearray()

    def next(self, timeout, *kinds):
        """The next record, as its kind and its fields. Raises ValueError if the record is not of a given kind."""
        while True:
            body = self._next(timeout)
            if body is None:
                raise StreamError(StreamEnd.CUT)
            kind, fields = body[0], Reader(body[1:])
            if kind == CANCEL:
                _, why = fields.number(1), fields.text()
                raise Refused(f"cancelled: {why}" if why else "cancelled")
            if kind in kinds:
                return kind, fields
            if kind < CANCEL:
                raise ValueError("a record that is not allowed at this time")

    def _next(self, timeout):
        while True:
            length = int.from_bytes(self._bytes[:4])
            if len(self._bytes) >= 4:
                if not 1 <= length <= RECORD_MAX:
                    raise ValueError("a record of this length is not allowed")
                if len(self._bytes) >= 4 + length:
                    body = bytes(self._bytes[4 : 4 + length])
                    del self._bytes[: 4 + length]
                    return body
            data = self._stream.read(timeout)
            if not data:
                return None
            self._bytes += data

    def end(self, timeout):
        """Waits for the end of the stream, and ignores records before it."""
        while self._next(timeout):
            pass


class IncomingFile:
    """A file of an offer. While it is incomplete it has no name (O_TMPFILE), and `path` is None."""

    def __init__(self, name, size):
        self.name, self.size, self.path = name, size, None
        self.tree, self._file = Tree(), None

    received = property(lambda self: self.tree.bytes)

    def write(self, directory, data):
        if self._file is None:
            self._file = open(os.open(directory, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb")
        self._file.seek(self.tree.bytes)
        self._file.write(data)
        self.tree.add(data)

    def place(self, directory):
        """Gives the complete file its name, or the name with a number if the name is taken. No existing file is replaced."""
        self.write(directory, b"")
        self._file.truncate(self.size)
        self._file.flush()
        os.fsync(self._file.fileno())
        name = "_" + self.name[1:] if self.name[0] in ".-" else self.name
        (stem, ending), folder = os.path.splitext(name), os.open(directory, os.O_PATH)
        try:
            for number in range(1, 1_000):
                tail = ending if number == 1 else f"-{number}{ending}"
                name = stem.encode()[: 255 - len(tail.encode())].decode(errors="ignore") + tail
                with contextlib.suppress(FileExistsError):
                    os.link(f"/proc/self/fd/{self._file.fileno()}", name, dst_dir_fd=folder)
                    self.path = os.path.join(directory, name)
                    return
            raise OSError("all names are taken")
        finally:
            os.close(folder)
            self.forget()

    def forget(self):
        if self._file:
            self._file.close()
            self._file = None


class Incoming:
    """A transfer from a member. `files` is empty before the manifest has arrived. `error` explains an early end."""

    def __init__(self, sender, digest, fields):
        self.sender, self._digest, self.files = sender, digest, []
        self.list_bytes, self.entries, self.count, self.bytes = (fields.number(count) for count in (4, 4, 4, 8))
        self.name = _name(fields.bytes(fields.number(1)))
        self.is_running, self.is_over, self.error = False, False, None

    def end(self, error):
        self.is_over, self.error = True, error
        for file in self.files:
            file.forget()

    def list(self, encoded):
        if hashlib.sha256(encoded).digest() != self._digest:
            raise ValueError("the list does not match the offer")
        fields, names, files = Reader(encoded), [], []
        while fields.offset < len(encoded):
            if fields.bytes(2) != b"\0\1":
                raise ValueError("only files were offered")
            names.append(fields.bytes(fields.number(1)))
            files.append(IncomingFile(_name(names[-1]), fields.number(8)))
        if sorted(set(names)) != names or (len(files), sum(file.size for file in files)) != (self.count, self.bytes):
            raise ValueError("the files do not match the offer")
        self.files = files


def _is_name(encoded):
    name = encoded.decode(errors="replace")
    return 1 <= len(encoded) <= 255 and name not in (".", "..") and not ILLEGAL.search(name) and name.encode() == encoded


def _name(encoded):
    if not _is_name(encoded):
        raise ValueError("a name that is not allowed")
    return encoded.decode()


class Transfers:
    """All transfers of a session. `accept` is called for each Incoming; it returns None, or the reason to decline."""

    def __init__(self, session, directory=None, accept=lambda incoming: "nothing is accepted here"):
        self._session, self._directory, self._accept = session, directory, accept
        self._lock, self._answers, self._kept, self._running = threading.Lock(), {}, {}, []

    def start(self):
        """Starts a thread that reads all events of the session. For an application that handles no event itself."""
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def _serve(self):
        for event in self._session:
            if isinstance(event, IncomingStream) and not self.take(event):
                _refuse(event)

    def take(self, stream):
        """Handles an incoming stream. Returns False if the stream does not belong to a transfer."""
        match = STREAM.fullmatch(stream.name)
        if match is None:
            return False
        resource, attempt = match.groups()
        if resource is None:
            to, arrived = self._answers.get(attempt, (None, None))
            if to == stream.sender:
                del self._answers[attempt]
                arrived.put(stream)
            else:
                _refuse(stream)
            return True
        node = stream.sender.node
        with self._lock:
            has_room = self._running.count(node) < AT_ONCE_MAX - len(self._running)
            self._running += [node] * has_room
        if has_room:
            threading.Thread(target=self._receive, args=(stream, resource, attempt), daemon=True).start()
        else:
            _refuse(stream)
        return True

    # Sending

    def send(self, paths, to):
        """Sends files and waits until the member has all. Returns a verdict for each path, in the order of `paths`.
        Raises Refused if the member declines, and CausewayError if the member is away for an hour."""
        named = {os.fsencode(os.path.basename(path)): path for path in paths}
        if not 1 <= len(paths) <= FILES_MAX or len(named) < len(paths) or not all(map(_is_name, named)):
            raise CausewayError(Code.INVALID, f"an offer has 1 to {FILES_MAX} files with different, plain names")
        files = [(name, os.path.getsize(path)) for name, path in sorted(named.items())]
        until = time.monotonic() + BREAK_SECONDS
        for attempt in range(ATTEMPTS_MAX):
            while to not in self._session.connected() and time.monotonic() < until and not self._session._node.end:
                time.sleep(0.1)
            try:
                verdicts = self._attempt(files, [named[name] for name, _ in files], to)
                return [verdicts[os.fsencode(os.path.basename(path))] for path in paths]
            except CausewayError as error:
                if error.code not in (Code.UNAVAILABLE, Code.FULL) or getattr(error, "end", None) not in BREAKS:
                    raise
            time.sleep(min(0.2 * 2**attempt, 5))
        raise CausewayError(Code.UNAVAILABLE, "the connection fails repeatedly")

    def _attempt(self, files, paths, to):
        listed = b"".join(b"\0\1" + bytes([len(name)]) + name + struct.pack(">Q", size) for name, size in files)
        attempt, arrived = os.urandom(8).hex(), queue.SimpleQueue()
        digest, records = hashlib.sha256(listed).digest(), None
        stream = self._session.open_stream(f"causeway:resource:{digest[:8].hex()}:{attempt}", to)
        self._answers[attempt] = (to, arrived)
        try:
            sizes = struct.pack(">IIIQ", len(listed), len(files), len(files), sum(size for _, size in files))
            stream.write(record(OFFER, b"\0\1", digest, sizes, text(files[0][0].decode())))
            records = _Records(self._answer(stream, arrived))
            return self._send_files(stream, records, listed, files, paths)
        except ValueError as error:
            _say(stream, BROKEN, str(error))
            raise CausewayError(Code.INVALID, f"the member violated the protocol: {error}") from error
        except StreamError as error:
            if records and error.end == StreamEnd.CUT:
                _find_reason(records)
            raise
        finally:
            self._answers.pop(attempt, None)
            _cut(stream)

    def _send_files(self, stream, records, listed, files, paths):
        kind = PROMPT
        while kind == PROMPT:
            kind, fields = records.next(None, PROMPT, ANSWER)
        code, why = fields.number(1), fields.text()
        if code > KNOWN:
            raise Refused(why)
        for start in range(0, len(listed) * (code == ACCEPTED), 32_768):
            stream.write(record(MANIFEST, listed[start : start + 32_768]))
        held, verdicts = {}, {}

        def number(fields):
            number = fields.number(4)
            if number >= len(files):
                raise ValueError("no such file")
            return number

        while kind != READY:
            kind, fields = records.next(SILENCE_SECONDS, HELD, READY)
            if kind == HELD:
                held |= {number(fields): (fields.number(8), fields.bytes(32))}
        for file, path in enumerate(paths):
            self._send_file(stream, file, path, files[file][1], *held.get(file, (0, b"")))
        while len(verdicts) < len(files):
            _, fields = records.next(None, VERDICT)
            verdicts |= {number(fields): fields.number(1)}
        with contextlib.suppress(CausewayError):    # the member has all files, so a failure has no effect
            stream.finish(timeout=10)
        return {name: verdicts[file] for file, (name, _) in enumerate(files)}

    def _answer(self, stream, arrived):
        for _ in range(5 * OFFER_SECONDS):
            with contextlib.suppress(queue.Empty):
                return arrived.get(timeout=0.2)
            if stream.end is not None:
                raise StreamError(stream.end)
        raise CausewayError(Code.TIMED_OUT, "the offer was not answered")

    def _send_file(self, stream, number, path, size, held, root):
        tree, of_file = Tree(), struct.pack(">I", number)
        try:
            with open(path, "rb") as file:
                while tree.bytes < held <= size and (data := file.read(min(PIECE, held - tree.bytes))):
                    tree.add(data)
                # If the held bytes differ from this file, the file is sent from its beginning.
                if held and (tree.bytes != held or tree.root != root):
                    tree = Tree()
                    file.seek(0)
                stream.write(record(BEGIN, of_file, struct.pack(">Q", tree.bytes)))
                while tree.bytes < size:
                    data = file.read(min(PIECE, size - tree.bytes))
                    if not data:
                        raise OSError("it became shorter during the transfer")
                    stream.write(record(BYTES, data))
                    tree.add(data)
            stream.write(record(ROOT, of_file, tree.root))
        except OSError as error:
            stream.write(record(SKIP, of_file, text(_short(error.strerror or str(error)))))

    # Receiving

    def _receive(self, stream, resource, attempt):
        answers = incoming = None
        try:
            records = _Records(stream)
            _, fields = records.next(OFFER_SECONDS, OFFER)
            version, digest = fields.number(2), fields.bytes(32)
            if version != 1 or digest[:8].hex() != resource:
                raise ValueError("the offer does not match the stream")
            offered = Incoming(stream.sender, digest, fields)
            answers = self._session.open_stream(f"causeway:answer:{attempt}", stream.sender)
            incoming, code, why = self._decide((stream.sender, digest), offered)
            answers.write(record(ANSWER, bytes([code]), text(why)))
            if incoming:
                self._take_files(incoming, records, answers, code)
            records.end(timeout=10)
            if incoming:
                self._conclude(incoming, None)
            answers.finish(timeout=10)
        except (Refused, ValueError, OSError) as error:
            if incoming:
                self._conclude(incoming, str(error))
            if answers and not isinstance(error, Refused):
                reason = BROKEN if isinstance(error, ValueError) else CANNOT_WRITE
                _say(answers, reason, getattr(error, "strerror", None) or str(error))
        except CausewayError:
            pass        # a break: the sender can resume the transfer on another stream
        finally:
            if incoming:
                incoming.is_running = False
            _cut(stream, answers)
            with self._lock:
                self._running.remove(stream.sender.node)

    def _decide(self, key, offered):
        """Decides on an offer. Returns the transfer to receive, or None, and the answer's code and text."""
        with self._lock:
            known = self._kept.get(key)
            if known:
                if known.is_running:
                    return None, BUSY, ""
                known.is_running = True
                return known, KNOWN if known.files else ACCEPTED, ""
        if not 1 <= offered.count == offered.entries <= FILES_MAX or offered.list_bytes > ENTRY_MAX * offered.count:
            return None, DECLINED, f"only 1 to {FILES_MAX} files are accepted, and no folders"
        if shutil.disk_usage(self._directory or ".").free < offered.bytes:
            return None, NO_SPACE, ""
        why = self._accept(offered)
        if why is not None:
            return None, DECLINED, _short(why)
        with self._lock:
            resting = [other for other, incoming in self._kept.items() if not incoming.is_running]
            for other in resting[: max(0, len(self._kept) - KEPT_MAX + 1)]:
                self._kept.pop(other).end("the transfer was not resumed")
            self._kept[key], offered.is_running = offered, True
        return offered, ACCEPTED, ""

    def _conclude(self, incoming, error):
        with self._lock:
            self._kept = {key: other for key, other in self._kept.items() if other is not incoming}
        incoming.end(error)

    def _take_files(self, incoming, records, answers, code):
        if code == ACCEPTED:
            listed = b""
            while len(listed) < incoming.list_bytes:
                listed += records.next(SILENCE_SECONDS, MANIFEST)[1].packet
            incoming.list(listed)
        for number, file in enumerate(incoming.files):
            if file.received:
                answers.write(record(HELD, struct.pack(">IQ", number, file.received), file.tree.root))
        answers.write(record(READY))
        for number, file in enumerate(incoming.files):
            verdict = self._take_file(number, file, records, answers)
            answers.write(record(VERDICT, struct.pack(">IB", number, verdict)))

    def _take_file(self, number, file, records, answers):
        def hear(*kinds):
            kind, fields = records.next(SILENCE_SECONDS, *kinds)
            if kind != BYTES and fields.number(4) != number:
                raise ValueError("a file out of turn")
            return kind, fields

        kind, fields = hear(BEGIN, COMPARE, SKIP)
        if kind == COMPARE:
            leaves = file.tree.leaves
            for first in range(0, len(leaves), 1_024):
                some = leaves[first : first + 1_024]
                answers.write(record(LEAVES, struct.pack(">IIH", number, first, len(some)), *some))
            kind, fields = hear(BEGIN, SKIP)
        if kind == BEGIN:
            offset = fields.number(8)
            if offset != file.received:
                if file.path or offset > file.received or offset % LEAF:
                    raise ValueError("an offset that is not allowed")
                file.tree.cut(offset // LEAF)
            while (heard := hear(BYTES, ROOT, SKIP))[0] == BYTES:
                data = heard[1].packet
                if len(data) > file.size - file.received:
                    raise ValueError("more bytes than the file has")
                file.write(self._directory, data)
            kind, fields = heard
        if kind == SKIP:
            return NOT_SENT
        if file.received < file.size:
            raise ValueError("fewer bytes than the file has")
        if fields.bytes(32) != file.tree.root:
            file.tree.cut(0)
            return DIFFERS
        if file.path is None:
            file.place(self._directory)
        return STORED
