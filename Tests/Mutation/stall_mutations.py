"""Mutations of the rules for a link whose neighbour does not read: see mutate.py."""

from row import Row

LINK = "Sources/Link/Link.swift"
ROWS = [
    Row("a neighbour is declared dead by a ping that was not sent", LINK,
        "return liveness.excuse(until: end)", "return close(.timedOut, retryAfterSeconds: 0, local: local)", "LinkTests"),
    Row("a neighbour over Wi-Fi may also stall without a timeout", LINK,
        "isBlocked: bearer == .bluetoothLE && (", "isBlocked: (", "LinkTests"),
    Row("a ping that is queued counts as sent", LINK, "(isHeld || queue.controlByteCount > 0)", "isHeld", "LinkTests"),
    Row("a neighbour that sends but does not receive is kept for ever", LINK,
        "if end <= now { return close(", "if end <= now && due == .death { return close(", "LinkTests"),
    Row("pings queue up for a stalled neighbour", LINK,
        "if awaitsPong { return liveness.pingSent(now: now) }", "", "LinkTests"),
    Row("a ping that was sent late gets no time for its answer", LINK,
        "if wasExcused { return liveness.excuse(until: now + Liveness.answerMax) }", "", "LinkTests"),
    Row("a neighbour that resumes keeps its old ping deadline", LINK,
        "    stall = Stall()\n    liveness.pingSent(now: now)\n", "    stall = Stall()\n", "LinkTests"),
    Row("a slow neighbour counts as stalled from the start", "Sources/Link/Stall.swift",
        "since == .never || bytesOut != self.bytesOut", "since == .never", "LinkTests"),
    Row("bytes unsent by the stream are not reported", "Sources/Relay/LinkDriver.swift",
        "var hasUnsentBytes: Bool { !secure.outgoing.isEmpty }", "var hasUnsentBytes: Bool { false }", "RelayTests.LinkDriverTests"),
]
