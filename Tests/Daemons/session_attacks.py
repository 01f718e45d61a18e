"""A hostile member in sessions of applications, for hostile.py: tables that are expensive to verify, invitations that
nobody answers, transfers that stall. The victims are two applications at one box. Written from docs/protocol.md,
“Sessions”, and docs/resources.md."""
import itertools
import os
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Examples/python"))

from branch import behind
from causeway import CausewayError, Node, Outcome
from daemons import BINARY, Daemon
from member import Key
from membership import (
    ACCEPTED, ANSWER, INVITE, LEFT, TABLE, TABLE_HEADER, WANTED, WELCOME, Membership, Record, Table, Ticket, endpoint,
    session_id)
from stranger import STORED, Offer, leaf

SERVICE, FILES, VICTIM = "claimed", "claimed-files", "victim"
# The application leaves invitations with this context unanswered, like an absent person.
STAYS = b"stays"
STALLER = "staller"
ENDPOINT = struct.pack(">I", 1)
INVITATION_SECONDS, INVITATION_SECONDS_MAX = 30, 3600
# The rules: members connect only over sealed traffic, and are 8 at most, like the sessions of the applications.
RULES = bytes([2, 8])
# With this many inviters, each with its own session, a node reaches its limit of pending invitations.
INVITERS = 9
# With three signatures each, these make a table of 31 kB.
FORMER_MEMBERS = 100
TABLES_MADE = 20
TRANSFERS = 15
SESSIONS_KEPT = 8
DATA = b"abc"
WAIT_SECONDS = 30


# --- the victims ------------------------------------------------------------------------------------------------------


class Applications:
    """Two applications at the box. The first accepts each invitation that is not meant to stay, into a new session. The
    second is `causeway receive`, which accepts files from these daemons."""

    def __init__(self, root, box, senders):
        self.node = Node.connect(VICTIM, api(box))
        self.invitations = self.node.advertise(SERVICE)
        threading.Thread(target=self._accept, daemon=True).start()
        folder = os.path.join(root, "received")
        os.makedirs(folder)
        wanted = [word for sender in senders for word in ("--from", sender.id)]
        self.receiver = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", BINARY, "receive", folder, "--type", FILES, *wanted, "--config", box.config],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        browse, found = self.node.browse(FILES), None
        while not found or found.kind != "found":
            found = browse.next(WAIT_SECONDS)
        self.addresses, self.visits = (self.invitations.address, found.address), itertools.count()

    def visit(self, daemon):
        """Wait until an application of this daemon has joined a session with the first application, and the second has
        stored its file."""
        for attempt in (self._enter, self._store):
            insist(lambda: attempt(daemon))

    def stop(self):
        self.receiver.terminate()
        self.receiver.wait(10)
        self.node.close()

    def _accept(self):
        sessions = []
        for invitation in self.invitations:
            if invitation.context == STAYS:
                continue
            sessions.append(self.node.open_session(SERVICE))
            try:
                invitation.accept(sessions[-1])
            except CausewayError:                       # the invitation has ended meanwhile
                pass
            if len(sessions) > SESSIONS_KEPT:
                sessions.pop(0).leave()

    def _enter(self, daemon):
        with self._visitor(daemon, SERVICE, self.addresses[0]):
            pass

    def _store(self, daemon):
        with self._visitor(daemon, FILES, self.addresses[1]) as visitor:
            name = f"visit-{next(self.visits)}"
            assert Offer(visitor.node, FILES, name, [name], len(DATA), before=visitor).send_file(DATA, leaf(DATA)) == STORED

    def _visitor(self, daemon, service, address):
        return Visitor(f"visitor {next(self.visits)}", daemon, service, address)


class Visitor:
    """An application that is in a session with the one at `address`."""

    def __init__(self, name, daemon, service, address):
        self.node, self.address = Node.connect(name, api(daemon)), address
        self.session = self.node.open_session(service)

    def __enter__(self):
        try:
            outcome, why = self.session.invite(self.address).wait(WAIT_SECONDS)
            assert outcome == Outcome.CONNECTED, (outcome, why)
        except BaseException:
            self.node.close()
            raise
        return self

    def __exit__(self, *_):
        self.node.close()


def api(daemon):
    return f"{daemon.directory}/run/api.sock"


def insist(attempt):
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return attempt()
        except (AssertionError, CausewayError):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


# --- tables that are expensive to verify ------------------------------------------------------------------------------


class Host(Membership):
    """A member of a session that admits the victim to it. The session's founder has no node. It is a key, because the
    libcrypto key signs fast."""

    def __init__(self, identity, send):
        super().__init__(identity, ENDPOINT, send, lambda *_: True, lambda word, **pairs: None)
        self.founder = Key()
        self.origin = self.founder.id + ENDPOINT + self.founder.point + os.urandom(16) + RULES
        self.session = session_id(self.origin)
        self._table.origins[self.session] = self.origin
        for key, depth in ((self.founder, 0), (identity, 1)):
            address, ticket = self._ticket(key, 1, depth)
            self._table.records[self.session, address] = Record(key.point, ticket, ticket)
        self.members = [Key() for _ in range(FORMER_MEMBERS)]

    def invite(self, node):
        self.victim = node + endpoint(SERVICE, VICTIM, os.getuid())
        self._send(node, INVITE, invitation(INVITATION_SECONDS, self.victim, self.origin, b""))

    def table(self, version, serve=lambda: None):
        """A table in which all former members have been admitted again since the last version, and have left. Signing
        takes seconds on a slow machine: `serve` answers pings meanwhile."""
        table = Table()
        table.origins[self.session] = self.origin
        for number, member in enumerate(self.members):
            if number % 10 == 0:
                serve()
            address, ticket = self._ticket(member, version, 1)
            signed = b"causeway-leaves-1" + self.session + address + struct.pack(">IB", version, WANTED)
            departure = bytes([LEFT, WANTED, 0]) + member.sign(signed)
            table.records[self.session, address] = Record(member.point, ticket, ticket, departure)
        return TABLE_HEADER.pack(self.session, ENDPOINT, self.victim[16:], 0, bytes(16)) + table.bytes()

    def take(self, node, kind, payload):
        if kind != ANSWER:
            # Once connected, the host ignores all tables but its own.
            return None if self.connected() else super().take(node, kind, payload)
        if payload[4] == ACCEPTED:
            ticket = Ticket(1, 2, self.address, b"", b"")
            admits = self.identity.sign(b"causeway-admits-1" + ticket.text(self.session, self.victim))
            self._send(node, WELCOME, payload[:4] + struct.pack(">BIB", 1, 1, 2) + admits + b"\0" + self._table.bytes())

    def _ticket(self, member, version, depth):
        """A key's address, and its ticket from the founder."""
        address, ticket = member.id + ENDPOINT, Ticket(version, depth, self.founder.id + ENDPOINT, b"", b"")
        text = ticket.text(self.session, address)
        return address, replace(ticket, admits=self.founder.sign(b"causeway-admits-1" + text),
                                accepts=member.sign(b"causeway-accepts-1" + text))


def invitation(seconds, invitee, origin, context):
    return struct.pack(">4sH4s4sBx", os.urandom(4), seconds, ENDPOINT, invitee[16:], 1) + origin + context


def tables(me, port, sender, receiver):
    """The tables of an invented node, with valid signatures, 300 each. The next table goes when the box has taken the
    last one."""
    nodes = behind(me, 1, False, take=lambda _, kind, message: host.take(me.box, kind, message))
    nodes.introduce()
    end = nodes.ends[nodes.identities[0].id]
    # The founder has no node, so frames to it are dropped.
    host = Host(nodes.identities[0], lambda to, kind, payload: end.say(kind, payload) if to == me.box else lambda: False)
    host.invite(me.box)
    end_of_wait = time.monotonic() + WAIT_SECONDS
    while not host.connected():
        assert time.monotonic() < end_of_wait, "the application does not come into his session"
        me.serve(0.05)
        host.tick()
    made = []
    for version in range(1, TABLES_MADE + 1):
        made.append(host.table(version, me.serve))
    for table in itertools.chain(made, map(host.table, itertools.count(TABLES_MADE + 1))):
        is_taken = end.say(TABLE, table)
        yield b""
        while not is_taken():
            yield b""


# --- invitations that stay --------------------------------------------------------------------------------------------


def invitations(me, port, sender, receiver):
    """Invitations for an hour from invented nodes. Nobody answers them, and a new one replaces each that has ended."""
    nodes, victim = behind(me, INVITERS, False), me.box + endpoint(SERVICE, VICTIM, os.getuid())
    nodes.introduce()
    for identity in itertools.cycle(nodes.identities):
        origin = identity.id + ENDPOINT + identity.point + os.urandom(16) + RULES
        nodes.ends[identity.id].say(INVITE, invitation(INVITATION_SECONDS_MAX, victim, origin, STAYS))
        yield b""


# --- transfers that stall ---------------------------------------------------------------------------------------------


def stalls(me, port, sender, receiver):
    """A daemon that the receiver accepts. Its application occupies all places for transfers that it can get, and sends
    no bytes of the files."""
    daemon = Daemon(me.root, STALLER, [SimpleNamespace(port=port)], relay=False).start()
    node, offers = Node.connect(STALLER, api(daemon)), []

    def stall():
        for number in itertools.count():
            offers[:] = [offer for offer in offers if offer.stream.end is None and offer.records.stream.end is None]
            try:
                if len(offers) < TRANSFERS:
                    name = f"stalled-{number}"
                    offer = Offer(node, FILES, name, [name], len(DATA), before=offers[0] if offers else None)
                    offer.send_manifest()
                    offers.append(offer)
                    continue
            except (AssertionError, CausewayError):     # no place is left for this offer
                pass
            time.sleep(1)

    threading.Thread(target=stall, daemon=True).start()
    # An offer without a place learns it late.
    count, end = 0, time.monotonic() + WAIT_SECONDS
    while not offers or len(offers) > count:
        assert time.monotonic() < end, "nothing of his was accepted"
        count, second = len(offers), time.monotonic() + 1
        while time.monotonic() < second:
            me.serve(0.05)
    yield from itertools.repeat(b"")
