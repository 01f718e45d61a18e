"""The attacks of a hostile member on sessions of applications, for `attacks`: tables that are expensive to verify,
invitations that nobody answers, and transfers that stall. The victims are two applications at one box. Written from
docs/protocol.md, “Sessions”, and docs/resources.md."""
import itertools
import os
import struct
import subprocess
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

from branch import behind
from causeway import CausewayError, Node, Outcome
from daemons import BINARY, Daemon
from member import Key
from membership import (
    ACCEPTED, ANSWER, INVITE, LEFT, TABLE, TABLE_HEADER, WANTED, WELCOME, Membership, Record, Table, Ticket, endpoint,
    session_id)
from stranger import STORED, Offer, leaf

SERVICE, FILES, VICTIM = "claimed", "claimed-files", "victim"
# The context of invitations that must stay unanswered. The victim ignores these invitations, like an absent person.
STAYS = b"stays"
STALLER = "staller"
ENDPOINT = struct.pack(">I", 1)
INVITATION_SECONDS, INVITATION_SECONDS_MAX = 30, 3600
# The rules of the hostile sessions: only sealed traffic, and at most 8 members, as in the victims' sessions.
RULES = bytes([2, 8])
# The number of inviters. Each inviter has its own session, and together they reach the limit of a node's pending
# invitations.
INVITERS = 9
# The number of members that have left. Each of these members has three signatures, so a table has 31 kB.
FORMER_MEMBERS = 100
TABLES_MADE = 20
TRANSFERS = 15
SESSIONS_KEPT = 8
DATA = b"abc"
WAIT_SECONDS = 30


# --- the victims ------------------------------------------------------------------------------------------------------


class Applications:
    """Two applications at the box. The first accepts every invitation into a new session, except those that must stay
    unanswered. The second is `causeway receive`, which accepts files from the daemons `senders`."""

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
        """Wait until a new application of this daemon has joined a session with the first application. Wait until the
        second application has stored a file from this daemon."""
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
            except CausewayError:                       # the invitation is no longer open
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
    """An application on a daemon that joins a session with the application at `address`."""

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
    """A hostile member that admits the victim to its session. The session's founder is a key without a node, because a
    key of libcrypto signs fast."""

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
        """Make a table in which all former members were admitted again since the last version, and have left. The
        signatures take seconds on a slow machine, so `serve` is called meanwhile to answer pings."""
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
            # After its connection, the host ignores the tables of other members.
            return None if self.connected() else super().take(node, kind, payload)
        if payload[4] == ACCEPTED:
            ticket = Ticket(1, 2, self.address, b"", b"")
            admits = self.identity.sign(b"causeway-admits-1" + ticket.text(self.session, self.victim))
            self._send(node, WELCOME, payload[:4] + struct.pack(">BIB", 1, 1, 2) + admits + b"\0" + self._table.bytes())

    def _ticket(self, member, version, depth):
        """The address of a key, and the ticket with which the founder admits it. A ticket is a signed admission."""
        address, ticket = member.id + ENDPOINT, Ticket(version, depth, self.founder.id + ENDPOINT, b"", b"")
        text = ticket.text(self.session, address)
        return address, replace(ticket, admits=self.founder.sign(b"causeway-admits-1" + text),
                                accepts=member.sign(b"causeway-accepts-1" + text))


def invitation(seconds, invitee, origin, context):
    return struct.pack(">4sH4s4sBx", os.urandom(4), seconds, ENDPOINT, invitee[16:], 1) + origin + context


def tables(me, port, sender, receiver):
    """Tables of an invented node, each with 300 valid signatures. Each table is sent when the box has acknowledged the
    table before."""
    nodes = behind(me, 1, False, take=lambda _, kind, message: host.take(me.box, kind, message))
    nodes.introduce()
    end = nodes.ends[nodes.identities[0].id]
    # The founder has no node, so the host's frames to it are dropped by this closure.
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
    """Invitations for an hour from invented nodes. Nobody answers them, and each node invites again when its invitation
    has ended."""
    nodes, victim = behind(me, INVITERS, False), me.box + endpoint(SERVICE, VICTIM, os.getuid())
    nodes.introduce()
    for identity in itertools.cycle(nodes.identities):
        origin = identity.id + ENDPOINT + identity.point + os.urandom(16) + RULES
        nodes.ends[identity.id].say(INVITE, invitation(INVITATION_SECONDS_MAX, victim, origin, STAYS))
        yield b""


# --- transfers that stall ---------------------------------------------------------------------------------------------


def stalls(me, port, sender, receiver):
    """Offers of a daemon that the receiver accepts. Its application occupies all transfer slots that it can get, and
    sends no bytes of the files."""
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
            except (AssertionError, CausewayError):     # there is no slot for this offer
                pass
            time.sleep(1)

    threading.Thread(target=stall, daemon=True).start()
    # The receiver refuses an offer without a slot only after a while. So this waits until the number of offers stays
    # the same.
    count, end = 0, time.monotonic() + WAIT_SECONDS
    while not offers or len(offers) > count:
        assert time.monotonic() < end, "nothing of his was accepted"
        count, second = len(offers), time.monotonic() + 1
        while time.monotonic() < second:
            me.serve(0.05)
    yield from itertools.repeat(b"")
