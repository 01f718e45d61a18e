"""Checks by which the users of a box share what it has: see mutate.py."""
from row import Row

RULE, CLIENTS, REQUESTS = "Sources/Primitives/ShareRule.swift", "Sources/LocalAPI/LocalClients.swift", "Sources/LocalAPI/LocalRequests.swift"
PLACES, STREAMING = "Sources/LocalAPI/LongPacketPlaces.swift", "Sources/Session/Streaming.swift"

ROWS = [
    Row("a single holder takes all that is free", RULE, "units <= free && held + units <= factor * free", "units <= free", "PrimitivesTests"),
    Row("everybody takes what is kept for the operator", RULE, "free: capacity - reserve - taken, factor: factor)",
        "free: capacity - taken, factor: factor)", "PrimitivesTests"),
    Row("one great piece takes a whole share of bytes", RULE, "max((factor * free - held) / (factor + 1), 0)", "free", "PrimitivesTests"),
    Row("one user takes all connections", CLIENTS, "guard mayTake(1, of: LocalLimits.clients, user, isOperator, counting: { _ in 1 }),",
        "guard true,", "LocalAPITests"),
    Row("a client never says hello", CLIENTS, "      if client.helloDeadline <= now { return place }\n", "", "LocalAPITests"),
    Row("one user's unread unreliable messages take all room", CLIENTS, "return message.heldBytes <= userMay && session", "return session",
        "LocalAPITests"),
    Row("one user takes all services", REQUESTS, "    if known == nil { try share(.services, client) }\n", "", "LocalAPITests"),
    Row("one service takes the whole advertisement", REQUESTS,
        "    try share(.serviceBytes(of: endpoint, service.byteCount), client)\n", "", "LocalAPITests"),
    Row("one user takes all sessions", REQUESTS, "    try share(.sessions, client)\n", "", "LocalAPITests"),
    Row("the user with most long packets is first", PLACES, "        held < best?.held ?? .max\n", "        best == nil\n", "LocalAPITests"),
    Row("a place for a long packet is kept for ever", PLACES, "nextDeadline <= now ? holders.first?.client : nil", "nil", "LocalAPITests"),
    Row("one user's applications take all invitations", "Sources/Session/Shares.swift",
        "return owner.isFavoured || ShareRule.allows(1, held: heldByUser, free: left, factor: Shares.userFactor)", "return true",
        "SessionTests"),
    Row("one user takes all invitations to a node", "Sources/Session/Inviting.swift",
        "mayInvite(session.owner), mayInvite(session.owner, to: address.node) else", "mayInvite(session.owner) else", "SessionTests"),
    Row("one user's unread messages take all loans", "Sources/Session/Lending.swift",
        "held: Int(ofUser), taken: Int(all), isFavoured: session.owner.isFavoured)\n    else", "held: 0, taken: Int(all), isFavoured: true)\n    else",
        "LocalAPITests"),
    Row("one user's members take all shares", "Sources/Session/Lending.swift", "Credit.shareMax, UInt64(mayHave))", "Credit.shareMax)",
        "LocalAPITests"),
    Row("one user opens all streams", STREAMING, "      mayHaveStream(session.owner), id > last\n", "      id > last\n", "LocalAPITests"),
    Row("one user is opened all streams", STREAMING, "      || !mayHaveStream(session.owner)\n", "", "LocalAPITests"),
    Row("one user's unread streams take all room", STREAMING, "UInt64(mayHave),\n", "\n", "LocalAPITests"),
    Row("one user's streams take all further turns", STREAMING,
        "return SessionLimits.streamsAhead.mayTake(1, held: ofUser, taken: all, isFavoured: owner.isFavoured)",
        "return all < SessionLimits.streamsAheadMax", "SessionTests"),
]
