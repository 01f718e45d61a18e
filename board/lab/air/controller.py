"""One controller: that of bumble, extended for a Linux host and for a medium with distance."""

import asyncio
import collections
import sys

from bumble import controller as bumble_controller
from bumble import hci
from bumble.core import PhysicalTransport

from .advertiser import AdvertisingSet, EventType, LegacyAdvertiser
from .classic import COMBINATION_KEY_P192, ClassicController
from .medium import INTERVAL_UNIT, LinkEnd

ErrorCode = hci.HCI_ErrorCode
Feature = hci.LmpFeatureMask

ACL_PACKET = 2
ENHANCED_CONNECTION_COMPLETE = 1 << 9    # a bit of the LE event mask
REPORT_DATA = 229                        # the maximum bytes of advertising data in one extended report
MORE_TO_COME = 1 << 5                    # the data status “more data follows” in the event type of an extended report

EXTENDED_COMMANDS = {
    hci.HCI_LE_SET_ADVERTISING_SET_RANDOM_ADDRESS_COMMAND,
    hci.HCI_LE_SET_EXTENDED_ADVERTISING_PARAMETERS_COMMAND,
    hci.HCI_LE_SET_EXTENDED_ADVERTISING_DATA_COMMAND,
    hci.HCI_LE_SET_EXTENDED_SCAN_RESPONSE_DATA_COMMAND,
    hci.HCI_LE_SET_EXTENDED_ADVERTISING_ENABLE_COMMAND,
    hci.HCI_LE_READ_MAXIMUM_ADVERTISING_DATA_LENGTH_COMMAND,
    hci.HCI_LE_READ_NUMBER_OF_SUPPORTED_ADVERTISING_SETS_COMMAND,
    hci.HCI_LE_REMOVE_ADVERTISING_SET_COMMAND,
    hci.HCI_LE_CLEAR_ADVERTISING_SETS_COMMAND,
    hci.HCI_LE_SET_EXTENDED_SCAN_PARAMETERS_COMMAND,
    hci.HCI_LE_SET_EXTENDED_SCAN_ENABLE_COMMAND,
    hci.HCI_LE_EXTENDED_CREATE_CONNECTION_COMMAND,
}

# Commands of a BR/EDR host at its start that bumble does not answer. The value contains the return parameters after the
# status. Other unknown commands are answered with success and no parameters.
BREDR_ANSWERS = {
    0x080E: bytes(2),                    # Read Default Link Policy Settings
    0x0C0D: bytes(4),                    # Read Stored Link Key: no capacity, no key
    0x0C12: bytes(2),                    # Delete Stored Link Key
    0x0C1B: b"\x00\x08\x12\x00",         # Read Page Scan Activity: interval and window
    0x0C1D: b"\x00\x08\x12\x00",         # Read Inquiry Scan Activity
    0x0C25: b"\x60\x00",                 # Read Voice Setting
    0x0C38: b"\x01",                     # Read Number of Supported IAC
    0x0C39: b"\x01\x33\x8b\x9e",         # Read Current IAC LAP: the general inquiry access code
    0x0C44: b"\x00",                     # Read Inquiry Mode
    0x0C46: b"\x00",                     # Read Page Scan Type
    0x0C58: b"\x00",                     # Read Inquiry Response Transmit Power Level
    0x0C5A: b"\x00",                     # Read Default Erroneous Data Reporting
}

LinkParameters = collections.namedtuple("LinkParameters", "interval latency supervision_timeout")


class Controller(ClassicController, bumble_controller.Controller):
    def __init__(self, name, medium, address, *, extended, forget_duplicates):
        super().__init__(name, link=medium, public_address=hci.Address(address, hci.Address.PUBLIC_DEVICE_ADDRESS))
        self.extended = extended
        self.forget_duplicates = forget_duplicates   # seconds until a duplicate of an advertiser is reported
        self.port = None
        self.busy_until = 0.0
        self.busy_seconds = 0.0                      # seconds with data, if the air has a rate
        self.packets_sent = 0
        self.local_name = name
        self.active_scan = False
        self.reported = {}
        self.accept_list = set()
        self.le_legacy_advertiser = LegacyAdvertiser(self)

        self.acl_data_packet_length = 1021
        self.le_acl_data_packet_length = 251
        self.total_num_acl_data_packets = self.total_num_le_acl_data_packets = 16
        self.supported_max_tx_octets = self.supported_max_rx_octets = self.suggested_max_tx_octets = 251

        self.lmp_features = (
            Feature.LE_SUPPORTED_CONTROLLER
            | Feature.SIMULTANEOUS_LE_AND_BR_EDR_TO_SAME_DEVICE_CAPABLE_CONTROLLER
            | Feature.EXTENDED_FEATURES
            | Feature.ENCRYPTION
            | Feature.ROLE_SWITCH
            | Feature.SECURE_SIMPLE_PAIRING_CONTROLLER_SUPPORT
            | Feature.RSSI_WITH_INQUIRY_RESULTS
            | Feature.EXTENDED_INQUIRY_RESPONSE
            | Feature.LMP_3_SLOT_PACKETS
            | Feature.LMP_5_SLOT_PACKETS
        )
        self.lmp_features_max_page_number = 1
        # The medium does not resolve private addresses and has one PHY, so the controller offers neither LL privacy nor
        # the coded PHY.
        self.le_features &= ~(hci.LeFeatureMask.LL_PRIVACY | hci.LeFeatureMask.LE_CODED_PHY)
        self.le_features &= ~hci.LeFeatureMask.LE_PERIODIC_ADVERTISING
        self.supported_commands = set(type(self).supported_commands)
        self.start_classic()
        if extended:
            self.supported_commands |= EXTENDED_COMMANDS
        else:
            self.le_features &= ~hci.LeFeatureMask.LE_EXTENDED_ADVERTISING

    # --- the host's side -------------------------------------------------------------------------------------------

    def on_packet(self, packet):
        """Handles a packet from the host. Data is passed to the medium directly, in the fragments that the host has
        made."""
        if packet[0] == ACL_PACKET:
            handle = packet[1] | packet[2] << 8
            connection = self.find_end(handle & 0xFFF)
            if connection:
                self.link.send_acl(connection, handle >> 12 & 3, packet[5:])
            return
        try:
            super().on_packet(packet)
        except Exception as error:                   # a faulty command must not stop all controllers
            print(f"air: {self.name}: {packet[:40].hex()}: {type(error).__name__}: {error}", file=sys.stderr)

    def send_hci_packet(self, packet):
        """Sends a packet to the host at once. bumble sends through the event loop, where data would overtake events."""
        if isinstance(packet, hci.HCI_Link_Key_Notification_Event):
            # bumble marks every link key as one of Secure Connections. The host has not requested Secure Connections.
            packet = bytes(packet)[:-1] + COMBINATION_KEY_P192
        self.send_raw(bytes(packet))

    def send_raw(self, packet):
        if self.port:
            self.port.send(packet)

    def find_end(self, handle):
        """Returns the end of an LE or BR/EDR link that belongs to the host's handle, or None."""
        connection = self.find_le_connection_by_handle(handle) or self.find_classic_connection_by_handle(handle)
        return connection if connection and getattr(connection, "air_link", None) else None

    def on_hci_command_packet(self, command):
        if hasattr(self, "on_" + command.name.lower()):
            super().on_hci_command_packet(command)
            return
        answer = bytes([ErrorCode.SUCCESS]) + BREDR_ANSWERS.get(command.op_code, b"")
        complete = bytes([1]) + command.op_code.to_bytes(2, "little") + answer
        self.send_raw(bytes([hci.HCI_EVENT_PACKET, hci.HCI_COMMAND_COMPLETE_EVENT, len(complete)]) + complete)

    def power_down(self):
        """Stops advertising, scanning and connecting. The other ends of links notice this by their supervision
        timeouts."""
        self.le_legacy_advertiser.stop()
        for advertising_set in self.advertising_sets.values():
            advertising_set.stop()
        self.advertising_sets.clear()
        self.le_scan_enable = False
        self.pending_le_connection = None
        self.accept_list.clear()
        for link in tuple(self.link.links):
            link.alive -= {end for end in link.ends if end.controller is self}
            if not link.alive:
                self.link.links.remove(link)
        self.le_connections.clear()
        self.stop_classic()

    def on_hci_reset_command(self, command):
        self.power_down()
        self.le_event_mask = 0x1F
        return super().on_hci_reset_command(command)

    # --- data --------------------------------------------------------------------------------------------------------

    def on_acl_sent(self, connection):
        if connection in connection.air_link.alive:
            self.send_raw(b"\x04\x13\x05\x01" + connection.handle.to_bytes(2, "little") + b"\x01\x00")

    def on_acl_received(self, connection, boundary, data):
        # The boundary flag of a message's first fragment is 0 from a host and 2 from a controller. Later fragments have
        # 1 in both directions.
        handle = connection.handle | (boundary or 2) << 12
        self.send_raw(bytes([ACL_PACKET]) + handle.to_bytes(2, "little") + len(data).to_bytes(2, "little") + data)

    # --- advertising -------------------------------------------------------------------------------------------------

    def on_hci_le_set_extended_advertising_parameters_command(self, command):
        self.advertising_sets.setdefault(command.advertising_handle, AdvertisingSet(self, command.advertising_handle))
        return super().on_hci_le_set_extended_advertising_parameters_command(command)

    def on_hci_le_set_advertising_set_random_address_command(self, command):
        self.advertising_sets.setdefault(command.advertising_handle, AdvertisingSet(self, command.advertising_handle))
        return super().on_hci_le_set_advertising_set_random_address_command(command)

    def on_hci_le_set_extended_advertising_enable_command(self, command):
        result = super().on_hci_le_set_extended_advertising_enable_command(command)
        if command.enable:
            for handle, duration in zip(command.advertising_handles, command.durations):
                if duration and handle in self.advertising_sets:
                    self.advertising_sets[handle].limit(duration * 0.01)
        return result

    def send_set_terminated(self, advertising_set, status, connection_handle):
        self.send_hci_packet(
            hci.HCI_LE_Advertising_Set_Terminated_Event(
                status=status,
                advertising_handle=advertising_set.handle,
                connection_handle=connection_handle,
                num_completed_extended_advertising_events=0,
            )
        )

    # --- scanning ----------------------------------------------------------------------------------------------------

    def on_hci_le_set_scan_parameters_command(self, command):
        self.active_scan = command.le_scan_type == 1
        return super().on_hci_le_set_scan_parameters_command(command)

    def on_hci_le_set_extended_scan_parameters_command(self, command):
        self.active_scan = command.scan_types[0] == 1
        return super().on_hci_le_set_extended_scan_parameters_command(command)

    def on_hci_le_set_scan_enable_command(self, command):
        self.reported.clear()
        return super().on_hci_le_set_scan_enable_command(command)

    def on_hci_le_set_extended_scan_enable_command(self, command):
        self.reported.clear()
        return super().on_hci_le_set_extended_scan_enable_command(command)

    def on_advertisement(self, advertiser, rssi):
        """Handles an advertising event of another controller that is in range."""
        if self.le_scan_enable and self.passes_scan_filter(advertiser.address):
            self.report(advertiser, advertiser.event_type, advertiser.payload, rssi)
            if self.active_scan and advertiser.event_type & EventType.SCANNABLE_ADVERTISING:
                response = advertiser.event_type | EventType.SCAN_RESPONSE
                self.report(advertiser, response, advertiser.scan_response, rssi)
        if self.pending_le_connection and advertiser.event_type & EventType.CONNECTABLE_ADVERTISING:
            self.initiate(advertiser)

    def passes_scan_filter(self, address):
        return not self.le_scanning_filter_policy & 1 or self.accepts(address)

    def report(self, advertiser, event_type, data, rssi):
        if self.filter_duplicates:
            # A real controller has a small table of the advertisers that it has reported, so entries expire in this
            # table.
            key, now = (advertiser.address, advertiser.sid, event_type, data), self.link.now()
            if now < self.reported.get(key, 0):
                return
            self.reported[key] = now + self.forget_duplicates
        if self.extended:
            self.report_extended(advertiser, event_type, data, rssi)
        elif event_type & EventType.LEGACY_ADVERTISING_PDU_USED:
            self.report_legacy(advertiser, event_type, data, rssi)

    def report_extended(self, advertiser, event_type, data, rssi):
        Event = hci.HCI_LE_Extended_Advertising_Report_Event
        parts = [data[start : start + REPORT_DATA] for start in range(0, len(data), REPORT_DATA)] or [b""]
        legacy = event_type & EventType.LEGACY_ADVERTISING_PDU_USED
        for number, part in enumerate(parts, 1):
            report = Event.Report(
                event_type=event_type | (MORE_TO_COME if number < len(parts) else 0),
                address_type=advertiser.address.address_type,
                address=advertiser.address,
                primary_phy=hci.Phy.LE_1M,
                secondary_phy=0 if legacy else hci.Phy.LE_1M,
                advertising_sid=advertiser.sid,
                tx_power=Event.TX_POWER_INFORMATION_NOT_AVAILABLE,
                rssi=rssi,
                periodic_advertising_interval=0,
                direct_address_type=0,
                direct_address=hci.Address.ANY,
                data=part,
            )
            self.send_hci_packet(Event([report]))

    def report_legacy(self, advertiser, event_type, data, rssi):
        Event = hci.HCI_LE_Advertising_Report_Event
        if event_type & EventType.SCAN_RESPONSE:
            kind = Event.EventType.SCAN_RSP
        else:
            kind = hci.HCI_LE_Extended_Advertising_Report_Event.LEGACY_PDU_TYPE_MAP[int(event_type) & 0xF]
        report = Event.Report(
            event_type=kind,
            address_type=advertiser.address.address_type,
            address=advertiser.address,
            data=data,
            rssi=rssi,
        )
        self.send_hci_packet(Event([report]))

    # --- the accept list ---------------------------------------------------------------------------------------------

    def accepts(self, address):
        return (int(address.is_random), bytes(address)) in self.accept_list

    def on_hci_le_clear_filter_accept_list_command(self, command):
        self.accept_list.clear()
        return super().on_hci_le_clear_filter_accept_list_command(command)

    def on_hci_le_add_device_to_filter_accept_list_command(self, command):
        self.accept_list.add((int(command.address_type), bytes(command.address)))
        return super().on_hci_le_add_device_to_filter_accept_list_command(command)

    def on_hci_le_remove_device_from_filter_accept_list_command(self, command):
        self.accept_list.discard((int(command.address_type), bytes(command.address)))
        return super().on_hci_le_remove_device_from_filter_accept_list_command(command)

    # --- connecting --------------------------------------------------------------------------------------------------

    def on_hci_le_create_connection_command(self, command):
        if not self.refuses_second_link(command):
            super().on_hci_le_create_connection_command(command)

    def on_hci_le_extended_create_connection_command(self, command):
        if not self.refuses_second_link(command):
            super().on_hci_le_extended_create_connection_command(command)

    def refuses_second_link(self, command):
        exists = not command.initiator_filter_policy and command.peer_address in self.le_connections
        if exists:
            self._send_hci_command_status(ErrorCode.CONNECTION_ALREADY_EXISTS_ERROR, command.op_code)
        return exists

    def on_hci_le_create_connection_cancel_command(self, command):
        pending, self.pending_le_connection = self.pending_le_connection, None
        if not pending:
            return hci.HCI_StatusReturnParameters(ErrorCode.COMMAND_DISALLOWED_ERROR)
        # The cancel command completes first. After this command the cancelled connection attempt completes, with this
        # status.
        status = ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR
        peer = pending.peer_address
        asyncio.get_running_loop().call_soon(
            self.send_connection_complete, status, 0, hci.Role.CENTRAL, peer, LinkParameters(0, 0, 0)
        )
        return hci.HCI_StatusReturnParameters(ErrorCode.SUCCESS)

    def initiate(self, advertiser):
        """Connects to the advertiser if the host has requested a connection with it."""
        pending = self.pending_le_connection
        if pending.initiator_filter_policy:
            wanted = self.accepts(advertiser.address)
        else:
            wanted = pending.peer_address == advertiser.address
        if not wanted:
            return
        # The own address types 2 and 3 stand for 0 (public) and 1 (random) if no private address is resolved.
        own_address = self.public_address if pending.own_address_type in (0, 2) else self.random_address
        if isinstance(pending, hci.HCI_LE_Extended_Create_Connection_Command):
            parameters = LinkParameters(
                pending.connection_interval_mins[0], pending.max_latencies[0], pending.supervision_timeouts[0]
            )
        else:
            parameters = LinkParameters(
                pending.connection_interval_min, pending.max_latency, pending.supervision_timeout
            )
        connection = self.link.connect(self, advertiser, own_address, parameters)
        if connection:
            self.pending_le_connection = None
            self.send_connection_complete(
                ErrorCode.SUCCESS, connection.handle, connection.role, connection.peer_address, parameters
            )

    def on_connected_as_peripheral(self, connection, advertiser, parameters):
        advertiser.stop()
        self.send_connection_complete(
            ErrorCode.SUCCESS, connection.handle, connection.role, connection.peer_address, parameters
        )
        if isinstance(advertiser, AdvertisingSet):
            self.send_set_terminated(advertiser, ErrorCode.SUCCESS, connection.handle)

    def make_connection(self, role, self_address, peer_address):
        connection = LinkEnd(
            controller=self,
            handle=self.allocate_connection_handle(),
            role=role,
            self_address=self_address,
            peer_address=peer_address,
            link=self.link,
            transport=PhysicalTransport.LE,
            link_type=hci.HCI_Connection_Complete_Event.LinkType.ACL,
        )
        self.le_connections[peer_address] = connection
        return connection

    def send_connection_complete(self, status, handle, role, peer, parameters):
        fields = {
            "status": status,
            "connection_handle": handle,
            "role": role,
            "peer_address_type": peer.address_type,
            "peer_address": peer,
            "connection_interval": parameters.interval,
            "peripheral_latency": parameters.latency,
            "supervision_timeout": parameters.supervision_timeout,
            "central_clock_accuracy": 0,
        }
        # A host that has enabled the enhanced event gets only that event. Linux enables the enhanced event with
        # extended advertising.
        if self.le_event_mask & ENHANCED_CONNECTION_COMPLETE:
            none = hci.Address.ANY
            event = hci.HCI_LE_Enhanced_Connection_Complete_Event(
                local_resolvable_private_address=none, peer_resolvable_private_address=none, **fields
            )
        else:
            event = hci.HCI_LE_Connection_Complete_Event(**fields)
        self.send_hci_packet(event)

    # --- connected ---------------------------------------------------------------------------------------------------

    def on_hci_disconnect_command(self, command):
        connection = self.find_end(command.connection_handle)
        if not connection:
            self._send_hci_command_status(ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, command.op_code)
            return
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        link = connection.air_link
        link.send(connection, lambda: link.end_at(link.other(connection), command.reason))
        link.end_at(connection, ErrorCode.CONNECTION_TERMINATED_BY_LOCAL_HOST_ERROR)

    def on_disconnected(self, connection, reason):
        if connection.transport == PhysicalTransport.LE:
            self.on_le_disconnected(connection, reason)
        else:
            self.on_classic_disconnected(connection.peer_address, reason)

    def on_hci_le_connection_update_command(self, command):
        if connection := self.find_le_connection_by_handle(command.connection_handle):
            connection.air_link.supervision_timeout = command.supervision_timeout * 0.01
            # The controller chooses the shortest allowed interval, as it does for a new connection.
            command.connection_interval_max = command.connection_interval_min
            connection.air_link.set_interval(command.connection_interval_min * INTERVAL_UNIT)
        super().on_hci_le_connection_update_command(command)

    def on_hci_le_set_data_length_command(self, command):
        octets, time = 251, 2120
        event = hci.HCI_LE_Data_Length_Change_Event(command.connection_handle, octets, time, octets, time)
        asyncio.get_running_loop().call_soon(self.send_hci_packet, event)
        return hci.HCI_StatusAndConnectionHandleReturnParameters(ErrorCode.SUCCESS, command.connection_handle)

    def on_hci_le_set_phy_command(self, command):
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        self.send_hci_packet(
            hci.HCI_LE_PHY_Update_Complete_Event(
                ErrorCode.SUCCESS, command.connection_handle, hci.Phy.LE_1M, hci.Phy.LE_1M
            )
        )

    def on_hci_read_rssi_command(self, command):
        connection = self.find_end(command.handle)
        if not connection:
            return hci.HCI_Read_RSSI_ReturnParameters(
                ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, command.handle, 127
            )
        sender = connection.air_link.other(connection).controller
        rssi = self.link.rssi(sender, self)
        return hci.HCI_Read_RSSI_ReturnParameters(ErrorCode.SUCCESS, command.handle, 127 if rssi is None else rssi)

    def on_hci_read_remote_version_information_command(self, command):
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        self.send_hci_packet(
            hci.HCI_Read_Remote_Version_Information_Complete_Event(
                status=ErrorCode.SUCCESS,
                connection_handle=command.connection_handle,
                version=self.lmp_version,
                manufacturer_name=self.manufacturer_company_identifier,
                subversion=self.lmp_subversion,
            )
        )
