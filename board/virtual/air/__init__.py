"""A virtual Bluetooth air: controllers that receive each other, each behind /dev/vhci or a unix socket.

The controllers are bumble's, from its unmodified package. This package adds the properties of radio that a model on one machine
lacks (distance, signal strength, lost links), and the features that a Linux host expects of a controller.

    __main__.py     the command line
    medium.py       reachability; links, their loss and their rate
    controller.py   one controller
    classic.py      its part for Bluetooth classic (BR/EDR)
    advertiser.py   the two styles of advertising
    ports.py        the ports between a host and its controller
    control.py      the control socket of the running air

Not modelled: packet loss other than silence, physical-layer rates, resolvable private addresses, periodic advertising."""
