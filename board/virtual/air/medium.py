"""The medium: reachability and signal strength between controllers, and the links between them."""

import asyncio
import math

from bumble import controller, hci, ll
from bumble.core import PhysicalTransport
from bumble.link import LocalLink

DEFAULT_RSSI = -60                       # dBm, at one hop's distance
SUPERVISION_TICK = 0.05                  # s
INTERVAL_UNIT = 0.00125                  # s
SLOT = 0.000625                          # s
BYTES_OVERHEAD = 14                      # preamble, address, header, checksum and the empty packet of the acknowledgement


class LinkEnd(controller.Connection):
    """A connection as one controller sees it."""

    air_link = None
    # The dataclass compares by value; ends of links are distinguished by identity.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Link:
    """One connection, LE or BR/EDR: its two ends, and the packets in transit between them.

    The link layer retransmits a packet that the other end does not receive, until it arrives or the supervision timeout ends the
    link. Meanwhile the packet waits here."""

    def __init__(self, medium, central, peripheral, supervision_timeout, interval):
        self.medium = medium
        self.ends = (central, peripheral)            # bumble Connection objects
        self.supervision_timeout = supervision_timeout
        self.set_interval(interval)
        self.waiting = {central: [], peripheral: []}
        self.heard_last = medium.now()
        self.alive = {central, peripheral}           # ends whose host still considers the link up

    def other(self, end):
        return self.ends[1] if end is self.ends[0] else self.ends[0]

    def set_interval(self, interval):
        """Connection events begin every `interval` seconds from now."""
        self.interval = interval
        self.anchor = self.event_end = self.medium.now()

    def next_turn(self, at):
        """The time at which a packet that is ready at `at` is sent: in the current connection event, or in the next one."""
        if at <= self.event_end:
            return at
        return self.anchor + math.ceil((at - self.anchor) / self.interval) * self.interval

    def is_audible(self):
        a, b = (end.controller for end in self.ends)
        return len(self.alive) == 2 and self.medium.hears(a, b) and self.medium.hears(b, a)

    def send(self, end, deliver):
        """Runs deliver() when the other end can receive this one, in order."""
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
        """Ends the link at both ends by a timeout."""
        for end in tuple(self.alive):
            self.end_at(end, hci.HCI_ErrorCode.CONNECTION_TIMEOUT_ERROR)

    def end_at(self, end, reason):
        """Ends the link at this end."""
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
    """bumble's link bus, with distance.

    bumble's bus finds the receiver of a packet by its address, delivers to all controllers, and raises if a receiver is gone. Here a
    connection belongs to a Link that knows its ends."""

    def __init__(self, rate=None):
        super().__init__()
        self.nodes = []                              # controllers, in order of creation
        self.links = []
        self.rate = rate                             # bit/s of payload; None: unlimited
        self.has_events = False                      # data waits for the connection events of its link; needs a rate
        self.path_rssi = {}                          # (sender, receiver) -> dBm; None: out of range

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
        """One advertising event: every controller in range receives it, and may connect."""
        sender = advertiser.controller
        for receiver in self.nodes:
            if receiver is not sender and (rssi := self.rssi(sender, receiver)) is not None:
                receiver.on_advertisement(advertiser, rssi)
            if not advertiser.enabled:               # a receiver has connected
                break

    def connect(self, initiator, advertiser, own_address, parameters):
        """Creates the link between an initiator and the advertiser that it has just received."""
        peripheral_node = advertiser.controller
        # One link for each pair of addresses, and only if both receive each other. Otherwise the request is lost.
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
        """Adds the link of two ends. BR/EDR has no connection events; its ends take turns by slots."""
        link = Link(self, central, peripheral, supervision_timeout, interval)
        central.air_link = peripheral.air_link = link
        self.links.append(link)

    # --- data and control on links -------------------------------------------------------------------------------

    def send_acl(self, connection, boundary, data):
        """Sends a fragment of the host's data. The credit returns when the fragment has left, at the rate of the air."""
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
            # Both radios are busy while the packet is sent, because the links of a node share its air time.
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
        """Called by bumble's Connection, for LE. Two nodes may share several links; one link matches both addresses."""
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
        """Checks all links until cancelled: times out links out of range, and delivers waiting packets."""
        while True:
            await asyncio.sleep(SUPERVISION_TICK)
            now = self.now()
            for link in tuple(self.links):
                link.supervise(now)
