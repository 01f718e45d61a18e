"""A virtual Bluetooth air: controllers that hear each other, each behind /dev/vhci or a unix socket.

The controllers are bumble's, from its unmodified package; this package adds what radio has and a model on one machine
lacks (distance, signal strength, links that die) and what a Linux host expects of a controller.

    __main__.py     the command line
    medium.py       who hears whom; links, their loss and their rate
    controller.py   one controller
    classic.py      what it has of Bluetooth classic (BR/EDR)
    advertiser.py   the two styles of advertising
    ports.py        how a host reaches its controller
    control.py      changing the air while it runs

Not modelled: packet loss short of silence, physical-layer rates, resolvable private addresses, periodic advertising."""
