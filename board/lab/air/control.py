"""The control socket, which changes the air while it runs. Each line that arrives at this unix socket is a command, and
the answer is a line of JSON.

  nodes                       every controller: its address, whether it advertises, scans or connects, the number of data
                              packets that it has sent, and, if data has a rate, the time for which it was busy with data
  links                       every link
  range A B far|near|DBM      in both directions; `range A>B ...` for one direction only
  cut A B                     ends the link between A and B, as after its supervision timeout
  rate none|BITS-PER-SECOND   the rate of data
  events on|off               whether data waits for the next connection event of its link (only with a rate)

An answer is {"ok": true, ...} or {"ok": false, "error": "..."}."""

import asyncio
import json
import os

from .medium import DEFAULT_RSSI


class ControlSocket:
    def __init__(self, medium, path):
        self.medium = medium
        self.path = path

    async def listen(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        await asyncio.start_unix_server(self.serve, self.path)

    async def serve(self, reader, writer):
        while line := await reader.readline():
            try:
                answer = {"ok": True, **self.execute(line.decode().split())}
            except (LookupError, ValueError, TypeError) as error:
                answer = {"ok": False, "error": str(error)}
            writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    def execute(self, words):
        command, *arguments = words
        commands = {
            "nodes": self.nodes,
            "links": self.links,
            "range": self.set_range,
            "cut": self.cut,
            "rate": self.set_rate,
            "events": self.set_events,
        }
        if command not in commands:
            raise LookupError(f"no command {command}")
        return commands[command](*arguments) or {}

    def nodes(self):
        return {
            "nodes": {
                node.name: {
                    "address": node.public_address.to_string(with_type_qualifier=False),
                    "advertising": node.le_legacy_advertiser.enabled
                    or any(advertising_set.enabled for advertising_set in node.advertising_sets.values()),
                    "scanning": node.le_scan_enable,
                    "connecting": node.pending_le_connection is not None,
                    "links": len(node.le_connections),
                    "packets_sent": node.packets_sent,
                    "busy_seconds": round(node.busy_seconds, 6),
                }
                for node in self.medium.nodes
            }
        }

    def links(self):
        return {"links": [link.describe() for link in self.medium.links]}

    def set_range(self, *arguments):
        *names, distance = arguments
        one_way = len(names) == 1
        first, second = names[0].split(">") if one_way else names
        a, b = self.medium.node(first), self.medium.node(second)
        rssi = {"far": None, "near": DEFAULT_RSSI}[distance] if distance in ("far", "near") else int(distance)
        self.medium.set_path(a, b, rssi)
        if not one_way:
            self.medium.set_path(b, a, rssi)

    def cut(self, first, second):
        nodes = {self.medium.node(first), self.medium.node(second)}
        broken = [link for link in self.medium.links if {end.controller for end in link.ends} == nodes]
        for link in broken:
            link.break_off()
        return {"cut": len(broken)}

    def set_rate(self, rate):
        self.medium.rate = None if rate == "none" else float(rate)

    def set_events(self, word):
        self.medium.has_events = {"on": True, "off": False}[word]
