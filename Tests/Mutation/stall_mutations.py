"""Mutations of what a link does with a neighbour that takes nothing."""

from row import Row

LINK = "Sources/Link/Link.swift"
ROWS = [
    Row("a neighbour is judged by a ping that has not left", LINK,
        "return liveness.excuse(until: end)", "return close(.timedOut, retryAfterSeconds: 0, local: local)", "LinkTests"),
    Row("a neighbour over Wi-Fi may take nothing, too", LINK,
        "isBlocked: bearer == .bluetoothLE && (", "isBlocked: (", "LinkTests"),
    Row("a ping that is queued counts as sent", LINK, "(isHeld || queue.controlByteCount > 0)", "isHeld", "LinkTests"),
    Row("a neighbour that talks may take nothing for ever", LINK,
        "if end <= now { return close(", "if end <= now && due == .death { return close(", "LinkTests"),
    Row("pings heap up for a neighbour that takes nothing", LINK,
        "if awaitsPong { return liveness.pingSent(now: now) }", "", "LinkTests"),
    Row("a ping that left late has no time to be answered", LINK,
        "if wasExcused { return liveness.excuse(until: now + Liveness.answerMax) }", "", "LinkTests"),
    Row("a neighbour that takes frames again has the old time to answer", LINK,
        "    stall = Stall()\n    liveness.pingSent(now: now)\n", "    stall = Stall()\n", "LinkTests"),
    Row("who takes a little is stalled from the start", "Sources/Link/Stall.swift",
        "since == .never || bytesOut != self.bytesOut", "since == .never", "LinkTests"),
    Row("what the stream holds is not told", "Sources/Relay/LinkDriver.swift",
        "var holdsBytes: Bool { !secure.outgoing.isEmpty }", "var holdsBytes: Bool { false }", "RelayTests.LinkDriverTests"),
]
