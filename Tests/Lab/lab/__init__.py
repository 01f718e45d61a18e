"""The library for the scenarios of the radio lab. It uses only the standard library, and runs inside the lab's machine.

    story.py        output, checks and waiting; the main function of a scenario
    process.py      programs: start, log, end, resident memory
    box.py          "computers": namespaces, cables and networks between them, Wi-Fi radios
    wifi.py         wpa_supplicant and its control sockets
    hotplug.py      radios that are blocked, unplugged and plugged in
    mdns.py         Avahi
    bluetooth.py    the virtual Bluetooth air; the kernel's management and L2CAP sockets
    phone.py        a program for Process: a Bluetooth host other than Linux
    client.py       a program: a Causeway client over such a host, RFCOMM or TCP, written from docs/protocol.md
    classic.py      Bluetooth classic through the kernel: inquiry, service records, RFCOMM
    panu.py         a peer that joins a network over Bluetooth classic
    carrier.py      a program: carries a node's streams over RFCOMM, for a peer whose only radio is Bluetooth classic
    le_carrier.py   a program: carries a node's streams over LE, from a host other than Linux that grants few credits
    told.py         the events that client.py prints
    station.py      a phone as an ordinary station, and its address
    membership.py   the session member of client.py
    node.py         a Causeway daemon on a box
    application.py  applications: clients of the local API, with Examples/python
    bystander.py    a program for Process: an application that a scenario can stop
    service.py      the daemon as config/causeway.service runs it
    clock.py        the kernel's clock, as the machine's NTP client would set it
    stage.py        the nodes of the main scenarios: a box and its peers
    command.py      user commands that run in parallel with the scenario, and chats between two nodes
    transfer.py     file transfers between nodes
    eavesdrop.py    captures of a box's traffic, and searches of a program's memory
    led.py          LEDs, simulated in user space
    gpio.py         a GPIO chip with a light and a button

A scenario:

    from lab import Box, cable, check, main, say

    def scenario():
        a, b = Box("a"), Box("b")
        cable(a, b)
        check(b.ping(a.address), "b reaches a")

    main(scenario)
"""

from .bluetooth import (
    BluetoothAir,
    Management,
    accept,
    att_listener,
    close_hard,
    connect_att,
    connect_channel,
    listen_channel,
)
from .box import Box, Lan, Machine, cable, load_radios
from .mdns import MulticastDNS
from .node import Node
from .process import Process, run
from .story import CheckFailed, check, main, say, step, wait_until
from .wifi import Supplicant, WPAControl

__all__ = [
    "BluetoothAir", "Box", "CheckFailed", "Lan", "Machine", "Management", "MulticastDNS", "Node", "Process",
    "Supplicant", "WPAControl", "accept", "att_listener", "cable", "check", "close_hard", "connect_att", "connect_channel",
    "listen_channel", "load_radios", "main", "run", "say", "step", "wait_until",
]
