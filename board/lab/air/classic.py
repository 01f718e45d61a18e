"""What bumble's controller lacks for BR/EDR: inquiry, paging only within range, and links that belong to the medium."""

import asyncio

from bumble import hci

from .medium import LinkEnd

ErrorCode = hci.HCI_ErrorCode
LinkType = hci.HCI_Connection_Complete_Event.LinkType

INQUIRY_UNIT = 1.28                      # seconds
RESPONSE_TIME = 0.1                      # seconds in which the controllers in range answer an inquiry
PAGE_TIMEOUT = 2.0                       # seconds after which an unanswered page fails
SUPERVISION_TIMEOUT = 5.0                # seconds
INQUIRY_SCAN, PAGE_SCAN = 1, 2           # bits of the parameter Scan_Enable
RESPONSE_BYTES = 240                     # the length of an extended inquiry response
COMBINATION_KEY_P192 = b"\x04"           # the type of a link key that was made without Secure Connections

# A Linux host uses one of these commands only if the controller reports the command as supported.
COMMANDS = {
    hci.HCI_INQUIRY_COMMAND,
    hci.HCI_INQUIRY_CANCEL_COMMAND,
    hci.HCI_CREATE_CONNECTION_COMMAND,
    hci.HCI_DISCONNECT_COMMAND,
    hci.HCI_ACCEPT_CONNECTION_REQUEST_COMMAND,
    hci.HCI_LINK_KEY_REQUEST_REPLY_COMMAND,
    hci.HCI_AUTHENTICATION_REQUESTED_COMMAND,
    hci.HCI_SET_CONNECTION_ENCRYPTION_COMMAND,
    hci.HCI_REMOTE_NAME_REQUEST_COMMAND,
    hci.HCI_READ_REMOTE_SUPPORTED_FEATURES_COMMAND,
    hci.HCI_READ_REMOTE_EXTENDED_FEATURES_COMMAND,
    hci.HCI_WRITE_LOCAL_NAME_COMMAND,
    hci.HCI_WRITE_SCAN_ENABLE_COMMAND,
    hci.HCI_WRITE_CLASS_OF_DEVICE_COMMAND,
    hci.HCI_WRITE_INQUIRY_MODE_COMMAND,
    hci.HCI_WRITE_EXTENDED_INQUIRY_RESPONSE_COMMAND,
    hci.HCI_WRITE_SIMPLE_PAIRING_MODE_COMMAND,
}


class ClassicController:
    """A mixin in front of bumble's controller. bumble's link manager connects, pairs and exchanges features."""

    def start_classic(self):
        self.class_of_device = 0
        self.inquiry_response = bytes(RESPONSE_BYTES)
        self.inquiry_timers = ()
        self.supported_commands |= COMMANDS

    def stop_classic(self):
        self.classic_scan_enable = 0
        self.end_inquiry()
        self.classic_connections.clear()

    def event(self, code, parameters):
        self.send_raw(bytes([hci.HCI_EVENT_PACKET, code, len(parameters)]) + parameters)

    # --- inquiry -----------------------------------------------------------------------------------------------------

    def on_hci_write_class_of_device_command(self, command):
        self.class_of_device = int(command.class_of_device)
        return super().on_hci_write_class_of_device_command(command)

    def on_hci_write_extended_inquiry_response_command(self, command):
        self.inquiry_response = bytes(command.extended_inquiry_response).ljust(RESPONSE_BYTES, b"\0")[:RESPONSE_BYTES]
        return super().on_hci_write_extended_inquiry_response_command(command)

    def on_hci_inquiry_command(self, command):
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        self.end_inquiry()
        complete = hci.HCI_Inquiry_Complete_Event(ErrorCode.SUCCESS)
        loop = asyncio.get_running_loop()
        self.inquiry_timers = (
            loop.call_later(RESPONSE_TIME, self.hear_responses),
            loop.call_later(command.inquiry_length * INQUIRY_UNIT, self.send_hci_packet, complete),
        )

    def on_hci_inquiry_cancel_command(self, _command):
        self.end_inquiry()
        return hci.HCI_StatusReturnParameters(ErrorCode.SUCCESS)

    def end_inquiry(self):
        for timer in self.inquiry_timers:
            timer.cancel()
        self.inquiry_timers = ()

    def hear_responses(self):
        for node in self.link.nodes:
            rssi = self.link.rssi(node, self)
            if node is self or rssi is None or not node.classic_scan_enable & INQUIRY_SCAN:
                continue
            one_response, repetition_mode, reserved, clock_offset = b"\x01", b"\x01", b"\0", b"\0\0"
            self.event(
                hci.HCI_EXTENDED_INQUIRY_RESULT_EVENT,
                one_response + bytes(node.public_address) + repetition_mode + reserved
                + node.class_of_device.to_bytes(3, "little") + clock_offset + rssi.to_bytes(1, "little", signed=True)
                + node.inquiry_response,
            )

    # --- paging ------------------------------------------------------------------------------------------------------

    def is_pageable(self, address):
        node = self.link.find_classic_controller(address)
        return bool(
            node and node.classic_scan_enable & PAGE_SCAN and self.link.hears(self, node) and self.link.hears(node, self)
        )

    def on_hci_create_connection_command(self, command):
        if self.is_pageable(command.bd_addr):
            super().on_hci_create_connection_command(command)
            return
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        failed = hci.HCI_Connection_Complete_Event(
            status=ErrorCode.PAGE_TIMEOUT_ERROR, connection_handle=0, bd_addr=command.bd_addr, link_type=LinkType.ACL,
            encryption_enabled=0,
        )
        asyncio.get_running_loop().call_later(PAGE_TIMEOUT, self.send_hci_packet, failed)

    def on_hci_remote_name_request_command(self, command):
        if self.is_pageable(command.bd_addr):
            super().on_hci_remote_name_request_command(command)
        else:
            self._send_hci_command_status(ErrorCode.PAGE_TIMEOUT_ERROR, command.op_code)

    def on_classic_connection_complete(self, peer_address, status):
        super().on_classic_connection_complete(peer_address, status)
        if status != ErrorCode.SUCCESS:
            self.classic_connections.pop(peer_address, None)
            return
        own = self.classic_connections[peer_address]
        peer = self.link.find_classic_controller(peer_address)
        other = peer.classic_connections.get(self.public_address)
        if other and other.handle:                   # the connection exists at the other end, too
            for end in (own, other):
                end.__class__ = LinkEnd              # bumble created it as a plain Connection
            self.link.join(own, other, SUPERVISION_TIMEOUT)

    # --- encryption --------------------------------------------------------------------------------------------------

    def on_hci_set_connection_encryption_command(self, command):
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        connection = self.find_classic_connection_by_handle(command.connection_handle)
        if not (connection and connection.air_link):
            return
        for end in connection.air_link.ends:
            end.controller.event(
                hci.HCI_ENCRYPTION_CHANGE_EVENT,
                bytes([ErrorCode.SUCCESS]) + end.handle.to_bytes(2, "little") + bytes([command.encryption_enable]),
            )
