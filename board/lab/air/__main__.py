"""python3 -m air: runs the virtual Bluetooth air until it is terminated. See --help, and the description of the
package."""

import argparse
import asyncio
import logging
import os
import signal

from .control import ControlSocket
from .controller import Controller
from .medium import Medium
from .ports import KernelPort, SocketPort


def parse_arguments():
    parser = argparse.ArgumentParser(prog="air", description="A virtual Bluetooth air of several controllers.")
    parser.add_argument("--controllers", type=int, default=3, metavar="N", help="controllers of this machine's kernel")
    parser.add_argument("--socket", action="append", default=[], metavar="PATH",
                        help="a controller for a host of its own, at a unix socket; its node is named after the file")
    parser.add_argument("--legacy", action="store_true", help="no extended advertising, like a chip before Bluetooth 5")
    parser.add_argument("--rate", type=float, metavar="BITS", help="bit/s of each controller (default: unlimited)")
    parser.add_argument("--forget-duplicates", type=float, default=3.0, metavar="SECONDS",
                        help="when a scanner with a duplicate filter reports an advertiser again (default 3, inf: never)")
    parser.add_argument("--control", default="/run/air", metavar="PATH", help="control socket (default /run/air)")
    return parser.parse_args()


async def run(arguments):
    medium = Medium(rate=arguments.rate)

    def make_controller(name):
        address = f"00:AA:01:00:00:{len(medium.nodes) + 1:02X}"
        return Controller(name, medium, address, extended=not arguments.legacy,
                          forget_duplicates=arguments.forget_duplicates)

    for number in range(arguments.controllers):
        KernelPort(make_controller(f"hci{number}"))
    for path in arguments.socket:
        await SocketPort(make_controller(os.path.basename(path)), path).listen()
    await ControlSocket(medium, arguments.control).listen()
    print(f"air: {len(medium.nodes)} controllers", flush=True)

    supervision = asyncio.create_task(medium.supervise())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervision.cancel)
    try:
        await supervision
    except asyncio.CancelledError:
        pass


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(run(parse_arguments()))
