"""Mutations of the budget of what others cause to be checked: see mutate.py."""

from row import Row

BUDGET = "Sources/Primitives/CheckBudget.swift"
TABLES = "Sources/Session/TableVerification.swift"
IN_CHECK = "Sources/Session/TableInCheck.swift"
CERTIFICATES = "Sources/CMbedTLS/Verification.c"
ROWS = [
    Row("a piece has no end", BUDGET, "    guard left > 0 else { return .pieceUsed }\n", "", "PrimitivesTests"),
    Row("a piece of tables has no end", BUDGET, "rate.take(upTo: left, by: holder", "rate.take(upTo: 32, by: holder", "PrimitivesTests"),
    Row("tables leave nothing for advertisements", BUDGET, "sparing: Limits.checksSparedByTables", "sparing: 0", "PrimitivesTests"),
    Row("checks that were not made are lost", BUDGET, "    rate.giveBack(checks, by: holder)\n", "", "PrimitivesTests"),
    Row("the next piece never begins by itself", BUDGET, "if now - pieceBegan >= Limits.pieceTime { beginPiece(now: now) }", "", "PrimitivesTests"),
    Row("signatures of a table are not counted", TABLES, "    guard allowance.take() else { return .later }\n", "", "SessionTests"),
    Row("records that hang on nothing cost nothing", TABLES, "guard isOwn || allowance.take() else { return false }", "", "SessionTests"),
    Row("wrong signatures of a table are all verified", TABLES, "if wrongSignatures >= SessionLimits.forgeriesMax {", "if wrongSignatures >= .max {",
        "SessionTests"),
    Row("of a node whose table is in check more is received", IN_CHECK, "    if isChecking(node) { return false }\n", "", "SessionTests"),
    Row("a link has any number of tables in check", IN_CHECK, " && !inCheck.contains { $0.holder == holder }", "", "SessionTests"),
    Row("any number of tables are in check", IN_CHECK, "return inCheck.count < SessionLimits.tablesInCheckMax && !", "return !", "SessionTests"),
    Row("a message without records waits for a place", IN_CHECK,
        "guard byteCount > SessionLimits.messageBytesWithoutRecords else { return false }", "", "SessionTests"),
    Row("former memberships are ended all at once", IN_CHECK,
        "guard allowance.take(1 + SessionLimits.checksPerSignature) else { break }", "", "SessionTests"),
    Row("a table in check is lost with its link", IN_CHECK,
        "where inCheck[index].holder == holder { inCheck[index].holder = FairShare.ownHolder }",
        "where inCheck[index].holder == holder { inCheck[index].holder = holder }", "SessionTests"),
    Row("what waits for a check stays when its link goes", "Sources/Node/Neighbours.swift", "    waitingFrames.remove(slot)\n", "", "NodeTests"),
    Row("what finds no room to wait is lost", "Sources/Node/WaitingFrames.swift",
        "guard payload.byteCount <= Limits.advertisementBytesMax, share.mayTake(blocks, by: slot) else { return false }",
        "guard share.mayTake(blocks, by: slot) else { return true }", "NodeTests"),
    Row("wrong deny-lists have no consequence", "Sources/Node/NodeTrust.swift", "      noteWrongSignature(on: slot, now)\n", "", "NodeTests"),
    Row("a byte of a frame is a sign of life", "Sources/Node/Node.swift", "    links[slot].arrived(bytes.count, now: now)\n",
        "    links[slot].heard(bytes.count, now: now)\n", "NodeTests"),
    Row("bytes postpone a ping for ever", "Sources/Link/Liveness.swift", "max(heardAt, min(arrivedAt, heardAt + silence))",
        "max(heardAt, arrivedAt)", "NodeTests"),
    Row("a handshake follows a chain of any length", CERTIFICATES,
        "if (count > 1 + MBEDTLS_X509_MAX_INTERMEDIATE_CA) return MBEDTLS_ERR_X509_FATAL_ERROR;", "",
        "SecureTransportTests.AttackTests"),
    Row("a chain of certificates costs any time", CERTIFICATES, " || cost + next > CHECK_COST_MAX", "", "SecureTransportTests"),
    Row("a key's exponent has any length", CERTIFICATES, " || mbedtls_mpi_bitlen(&rsa->MBEDTLS_PRIVATE(E)) > RSA_EXPONENT_BITS_MAX", "",
        "SecureTransportTests"),
]
