"""The medium: which controllers receive each other and at what signal strength, and the links between controllers."""

import asyncio
import math

from bumble import controller, hci, ll
from bumble.core import PhysicalTransport
from bumble.link import LocalLink

DEFAULT_RSSI = -60                       # dBm, the strength of `near`
SUPERVISION_TICK = 0.05                  # seconds
INTERVAL_UNIT = 0.00125                  # seconds
SLOT = 0.000625                          # seconds
BYTES_OVERHEAD = 14                      # preamble, address, header, checksum, and the empty packet that acknowledges


class LinkEnd(controller.Connection):
    """A connection as the controller at one end sees it."""

    air_link = None
    # bumble's dataclass compares connections by value. With this definition, each end is equal only to itself.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Link:
    """One connection, LE or BR/EDR: its two ends, and the packets in transit between them.

    A real link layer retransmits a packet that the other end does not receive, until the packet arrives or the
    supervision timeout ends the link. Here the packet waits in `waiting` during this time."""

    def __init__(self, medium, central, peripheral, supervision_timeout, interval):
        self.medium = medium
        self.ends = (central, peripheral)            # objects of bumble's class Connection
        self.supervision_timeout = supervision_timeout
        self.set_interval(interval)
        self.waiting = {central: [], peripheral: []}
        self.heard_last = medium.now()
        self.alive = {central, peripheral}           # the ends whose hosts consider the link up

    def other(self, end):
        return self.ends[1] if end is self.ends[0] else self.ends[0]

    def set_interval(self, interval):
        """Sets the interval of the connection events in seconds. The first event begins now."""
        self.interval = interval
        self.anchor = self.event_end = self.medium.now()

    def next_turn(self, at):
        """The time at which a packet that is ready at time `at` is sent: in the current connection event, or at the
        next one."""
        if at <= self.event_end:
            return at
        return self.anchor + math.ceil((at - self.anchor) / self.interval) * self.interval

    def is_audible(self):
        a, b = (end.controller for end in self.ends)
        return len(self.alive) == 2 and self.medium.hears(a, b) and self.medium.hears(b, a)

    def send(self, end, deliver):
        """Calls deliver() when the other end can receive packets of this end. Packets keep their order."""
        if self.waiting[end] or not self.is_audible():
            self.waiting[end].append(deliver)
        else:
            deliver()

    def supervise(self, now):
        if self.is_audible():
            self.heard_last = now
            for queue in self.waiting.values():
                packets, queue[:] = queue[:], []
                for deliver in packets:
                    deliver()
        elif now - self.heard_last > self.supervision_timeout:
            self.break_off()

    def break_off(self):
        """Ends the link at both ends with the reason “timeout”."""
        for end in tuple(self.alive):
            self.end_at(end, hci.HCI_ErrorCode.CONNECTION_TIMEOUT_ERROR)

    def end_at(self, end, reason):
        """Ends the link at one end and notifies its controller. The link is removed when both ends have ended."""
        if end not in self.alive:
            return
        self.alive.discard(end)
        end.controller.on_disconnected(end, reason)
        if not self.alive:
            self.medium.links.remove(self)

    def describe(self):
        central, peripheral = self.ends
        return {
            "central": central.controller.name,
            "peripheral": peripheral.controller.name,
            "transport": central.transport.name,
            "supervision_timeout": self.supervision_timeout,
            "interval": self.interval,
            "audible": self.is_audible(),
        }


class Medium(LocalLink):
    """bumble's link bus with distance.

    bumble's bus finds the receiver of a packet by its address, delivers to all controllers, and raises an error if the
    receiver is gone. In this medium a connection belongs to a Link, which knows both its ends."""

    def __init__(self, rate=None):
        super().__init__()
        self.nodes = []                              # the controllers in the order of their creation
        self.links = []
        self.rate = rate                             # bit/s of payload, or None for no limit
        self.has_events = False                      # whether data waits for connection events; needs a rate
        self.path_rssi = {}                          # (sender, receiver) -> dBm, or None if out of range

    @staticmethod
    def now():
        return asyncio.get_running_loop().time()

    def add_controller(self, controller):
        super().add_controller(controller)
        self.nodes.append(controller)

    def node(self, name):
        for controller in self.nodes:
            if controller.name == name:
                return controller
        raise LookupError(f"no node {name}")

    # --- distance --------------------------------------------------------------------------------------------------

    def rssi(self, sender, receiver):
        return self.path_rssi.get((sender, receiver), DEFAULT_RSSI)

    def hears(self, sender, receiver):
        return self.rssi(sender, receiver) is not None

    def set_path(self, sender, receiver, rssi):
        self.path_rssi[sender, receiver] = rssi

    # --- advertising -----------------------------------------------------------------------------------------------

    def advertise(self, advertiser):
        """Sends one advertising event. Every controller in range receives the event, and may connect to the
        advertiser."""
        sender = advertiser.controller
        for receiver in self.nodes:
            if receiver is not sender and (rssi := self.rssi(sender, receiver)) is not None:
                receiver.on_advertisement(advertiser, rssi)
            if not advertiser.enabled:               # a receiver has connected, which ended the advertising
                break

    def connect(self, initiator, advertiser, own_address, parameters):
        """Creates the link between an initiator and the advertiser whose event it has just received. Returns None if it
        creates none."""
        peripheral_node = advertiser.controller
        # Two addresses share one link at most. A connection request that the advertiser does not receive is lost.
        if own_address in peripheral_node.le_connections or advertiser.address in initiator.le_connections:
            return None
        if not self.hears(initiator, peripheral_node):
            return None
        peripheral = peripheral_node.make_connection(hci.Role.PERIPHERAL, advertiser.address, own_address)
        central = initiator.make_connection(hci.Role.CENTRAL, own_address, advertiser.address)
        self.join(central, peripheral, max(0.1, parameters.supervision_timeout * 0.01), parameters.interval * INTERVAL_UNIT)
        peripheral_node.on_connected_as_peripheral(peripheral, advertiser, parameters)
        return central

    def join(self, central, peripheral, supervision_timeout, interval=2 * SLOT):
        """Adds the link of two ends to the medium. The default interval is for BR/EDR, whose ends take turns by
        slots."""
        link = Link(self, central, peripheral, supervision_timeout, interval)
        central.air_link = peripheral.air_link = link
        self.links.append(link)

    # --- data and control on links -------------------------------------------------------------------------------

    def send_acl(self, connection, boundary, data):
        """Sends a fragment of the host's data. The host may send another one when the fragment has left at the rate of
        the air."""
        link = connection.air_link
        receiver = link.other(connection)
        connection.controller.packets_sent += 1

        def deliver():
            def arrive():
                connection.controller.on_acl_sent(connection)
                if receiver in link.alive:
                    receiver.controller.on_acl_received(receiver, boundary, data)

            if not self.rate:
                arrive()
                return
            # The two radios are busy while the packet is sent, because all links of a node share its radio.
            ends = (connection.controller, receiver.controller)
            start = max(self.now(), *(node.busy_until for node in ends))
            if self.has_events:
                start = link.next_turn(start)
            finish = link.event_end = start + (len(data) + BYTES_OVERHEAD) * 8 / self.rate
            for node in ends:
                node.busy_until = finish
                node.busy_seconds += finish - start
            asyncio.get_running_loop().call_at(finish, arrive)

        link.send(connection, deliver)

    def send_ll_control_pdu(self, sender_address, receiver_address, packet):
        """Called by bumble's Connection, for LE. Two nodes may have several links, so both addresses select the
        link."""
        for link in self.links:
            for end in link.ends:
                if end.transport == PhysicalTransport.LE and (end.self_address, end.peer_address) == (sender_address, receiver_address):
                    receiver = link.other(end)
                    link.send(end, lambda: self._deliver_control(link, receiver, packet))
                    return

    @staticmethod
    def _deliver_control(link, receiver, packet):
        if receiver not in link.alive:
            return
        if isinstance(packet, ll.TerminateInd):
            link.end_at(receiver, packet.error_code)
            return
        if isinstance(packet, ll.ConnectionUpdateInd):
            link.supervision_timeout = packet.timeout * 0.01
            link.set_interval(packet.interval * INTERVAL_UNIT)
        receiver.controller.on_ll_control_pdu(receiver.peer_address, packet)

    async def supervise(self):
        """Checks all links until it is cancelled. Delivers waiting packets of links in range, and ends links that were
        out of range too long."""
        while True:
            await asyncio.sleep(SUPERVISION_TICK)
            now = self.now()
            for link in tuple(self.links):
                link.supervise(now)
