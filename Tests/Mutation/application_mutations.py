"""Mutations of the commands that use the local API."""
from row import Row

SUITE = "ApplicationsTests"

ROWS = [
    Row("a chat with one peer shows the messages of all", "Sources/Applications/CommandChat.swift", "      if isWanted(from) {", "      if true {", SUITE),
    Row("a chat accepts the streams of its members", "Sources/Applications/CommandChat.swift", "isWanted: false, limit: 0", "isWanted: true, limit: 0", SUITE),
    Row("lines that a departed member lacks are not counted", "Sources/Applications/CommandChat.swift", "    lostCount += count\n", "", SUITE),
    Row("pipe reads more input than the stream accepts", "Sources/Applications/PipeSender.swift",
        "isInputOver ? 0 : limit - written", "isInputOver ? 0 : limit", SUITE),
    Row("pipe reads input while the daemon is behind", "Sources/Applications/PipeSender.swift", " && !connection.isBehind", "", SUITE),
    Row("pipe accepts a second stream", "Sources/Applications/PipeListener.swift", "let isWanted = stream == nil", "let isWanted = true", SUITE),
    Row("pipe continues although its output cannot be written", "Sources/Applications/PipeListener.swift", "    if console.hasFailed {", "    if false {", SUITE),
    Row("a peer without a pinned key is accepted without a question", "Sources/Applications/AcceptRule.swift",
        "peer.isVerified ? .yes : .no", ".yes", SUITE),
    Row("an offer of any size is accepted", "Sources/Applications/Receiving.swift", "    if offer.bytes > bytesMax {", "    if false {", SUITE),
    Row("a busy receiver is not invited again", "Sources/Applications/Sending.swift",
        "case .timedOut, .busy, .full: step = .seeking(from: console.now + .seconds(2))", "case .timedOut, .busy, .full: break", SUITE),
    Row("a command waits for a misspelt name", "Sources/Applications/PeerSearch.swift", "      if isWaiting { return .hint(text) }", "      return .hint(text)", SUITE),
]
