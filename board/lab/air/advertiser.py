"""Legacy and extended advertising. bumble models both; this module adds event types, scan responses, intervals in their
real unit, and the end of a limited advertising period."""

import asyncio

from bumble import controller as bumble_controller
from bumble import hci

EventType = hci.HCI_LE_Extended_Advertising_Report_Event.EventType
LegacyType = hci.HCI_LE_Set_Advertising_Parameters_Command.AdvertisingType

LEGACY_EVENTS = {
    LegacyType.ADV_IND: EventType.CONNECTABLE_ADVERTISING | EventType.SCANNABLE_ADVERTISING,
    LegacyType.ADV_SCAN_IND: EventType.SCANNABLE_ADVERTISING,
    LegacyType.ADV_NONCONN_IND: EventType(0),
}
DIRECTED = EventType.CONNECTABLE_ADVERTISING | EventType.DIRECTED_ADVERTISING
SHORTEST_INTERVAL = 0.02                 # seconds


class Repeating:
    """Sends one advertising event in each interval while it is enabled."""

    timer = None

    def start(self):
        self.stop()
        self.enabled = True
        self.timer = asyncio.get_running_loop().call_soon(self.fire)

    def stop(self):
        self.enabled = False
        if self.timer:
            self.timer.cancel()
            self.timer = None

    def fire(self):
        self.timer = asyncio.get_running_loop().call_later(max(self.interval, SHORTEST_INTERVAL), self.fire)
        self.controller.link.advertise(self)


class LegacyAdvertiser(Repeating, bumble_controller.LegacyAdvertiser):
    """Legacy advertising. It is the only advertiser of a controller before Bluetooth 5."""

    sid = hci.HCI_LE_Extended_Advertising_Report_Event.NO_ADI_FIELD_PROVIDED
    target = None

    @property
    def interval(self):
        return self.advertising_interval_min * 0.000625

    @property
    def event_type(self):
        return LEGACY_EVENTS.get(self.advertising_type, DIRECTED) | EventType.LEGACY_ADVERTISING_PDU_USED

    @property
    def payload(self):
        return bytes(self.advertising_data)

    @property
    def scan_response(self):
        return bytes(self.scan_response_data)


class AdvertisingSet(Repeating, bumble_controller.AdvertisingSet):
    """One of the advertising sets of a controller with extended advertising."""

    deadline = None

    @property
    def interval(self):
        return self.parameters.primary_advertising_interval_min * 0.000625

    @property
    def event_type(self):
        return EventType(int(self.parameters.advertising_event_properties) & 0x1F)

    @property
    def sid(self):
        if self.event_type & EventType.LEGACY_ADVERTISING_PDU_USED:
            return hci.HCI_LE_Extended_Advertising_Report_Event.NO_ADI_FIELD_PROVIDED
        return self.parameters.advertising_sid

    @property
    def payload(self):
        return bytes(self.data)

    @property
    def scan_response(self):
        return bytes(self.scan_response_data)

    def stop(self):
        super().stop()
        if self.deadline:
            self.deadline.cancel()
            self.deadline = None

    def limit(self, seconds):
        """Ends advertising after `seconds` and notifies the host of the end."""

        def expire():
            self.stop()
            self.controller.send_set_terminated(self, hci.HCI_ErrorCode.ADVERTISING_TIMEOUT_ERROR, 0)

        self.deadline = asyncio.get_running_loop().call_later(seconds, expire)
