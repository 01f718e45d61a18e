"""Test of the lab: Bluetooth classic with inquiry, RFCOMM without questions or bonds, controllers out of range, and the
end of a link."""

import threading
import time

from lab import BluetoothAir, Management, check, main, step, wait_until
from lab import classic

BOX, PHONE, FAR = 0, 1, 2
SERVICE = bytes(range(16))
PIECE, PIECES = bytes(600), 500


def scenario():
    with step("three controllers"):
        classic.load()
        air, kernel = BluetoothAir(controllers=3), Management()
        for index in (BOX, PHONE, FAR):
            classic.power_on(kernel, index)
        address = [kernel.address(index) for index in (BOX, PHONE, FAR)]
        air.set_range("hci0", "hci2", "far")
    with step("an inquiry finds who is discoverable, with name and service"):
        classic.make_discoverable(kernel, BOX, "box", SERVICE)
        response = classic.inquire(kernel, PHONE, address[BOX])
        check(SERVICE[::-1] in response and b"box" in response, "name and service are told", response)
    with step("nobody pages out of range"):
        try:
            classic.connect_rfcomm(address[FAR], address[BOX], 1)
            check(False, "no connection")
        except OSError as error:
            check(error.errno == 112, "the host is down", error)
    with step("RFCOMM, without a question and without a bond") as remark:
        listener, channel = classic.listen_rfcomm(address[BOX])
        dialled = classic.connect_rfcomm(address[PHONE], address[BOX], channel)
        accepted, _ = listener.accept()
        start, received = time.monotonic(), 0
        feeder = threading.Thread(target=lambda: [dialled.send(PIECE) for _ in range(PIECES)])
        feeder.start()
        while received < PIECES * len(PIECE):
            received += len(accepted.recv(65536))
        feeder.join()
        remark(f"{received * 8 / 1000 / (time.monotonic() - start):.0f} kbit/s")
        kept = [event for event in kernel._events if event[0] == 0x09 and event[2][0]]
        check(not kept, "no key is to be kept", kept)
    with step("a link that is out of range ends by its timeout") as remark:
        start = time.monotonic()
        air.set_range("hci0", "hci1", "far")
        accepted.settimeout(20)
        try:
            check(accepted.recv(1) == b"", "the stream ends")
        except OSError:
            pass
        remark(f"after {time.monotonic() - start:.1f} s")
        check(not [link for link in air.links() if link["audible"]], "no link is left", air.links())
    with step("back in range it connects again"):
        air.set_range("hci0", "hci1", "near")
        classic.connect_rfcomm(address[PHONE], address[BOX], channel).close()
    with step("an idle link ends"):
        wait_until("the link is gone", lambda: not air.links(), 20)


main(scenario)
