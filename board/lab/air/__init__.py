"""A virtual Bluetooth air: controllers that receive each other. Each controller serves a host through /dev/vhci or a
unix socket.

The controllers are those of bumble, whose package is not modified. This package adds two things: what a model on one
machine lacks of a radio (distance, signal strength, lost links), and what a Linux host expects of a controller.

  __main__.py     the command line
  medium.py       which controllers receive each other; links, with their loss and rate
  controller.py   one controller
  classic.py      the part of a controller for Bluetooth classic (BR/EDR)
  advertiser.py   the two styles of advertising
  ports.py        the ports between a host and its controller
  control.py      the control socket of the running air

Not modelled: packet loss except while two controllers are out of range, physical-layer rates, resolvable private
addresses, periodic advertising."""
