"""Mutations of the budget for signature checks that other nodes cause: see mutate.py."""

from row import Row

BUDGET = "Sources/Primitives/CheckBudget.swift"
TABLES = "Sources/Session/TableVerification.swift"
IN_CHECK = "Sources/Session/TableInCheck.swift"
CERTIFICATES = "Sources/CMbedTLS/Verification.c"
ROWS = [
    Row("a batch of checks has no limit", BUDGET, "    guard left > 0 else { return .pieceUsed }\n", "", "PrimitivesTests"),
    Row("a batch of table checks has no limit",
        BUDGET, "rate.take(upTo: left, by: holder", "rate.take(upTo: 32, by: holder", "PrimitivesTests"),
    Row("table checks use the reserve for advertisements", BUDGET, "sparing: Limits.checksSparedByTables", "sparing: 0", "PrimitivesTests"),
    Row("unused checks are not given back", BUDGET, "    rate.giveBack(checks, by: holder)\n", "", "PrimitivesTests"),
    Row("the next batch of checks never begins by itself",
        BUDGET, "if now - pieceBegan >= Limits.pieceTime { beginPiece(now: now) }", "", "PrimitivesTests"),
    Row("signatures of a table are not charged", TABLES, "    guard allowance.take() else { return .later }\n", "", "SessionTests"),
    Row("unconnected table records are not charged", TABLES, "guard isOwn || allowance.take() else { return false }", "", "SessionTests"),
    Row("verification of a table continues after too many wrong signatures",
        TABLES, "if wrongSignatures >= SessionLimits.forgeriesMax {", "if wrongSignatures >= .max {",
        "SessionTests"),
    Row("more messages are received from a node whose table is in check",
        IN_CHECK, "    if isChecking(node) { return false }\n", "", "SessionTests"),
    Row("one link may have any number of tables in check", IN_CHECK, " && !inCheck.contains { $0.holder == holder }", "", "SessionTests"),
    Row("the number of tables in check has no limit",
        IN_CHECK, "return inCheck.count < SessionLimits.tablesInCheckMax && !", "return !", "SessionTests"),
    Row("a message without records waits for a verification place", IN_CHECK,
        "guard byteCount > SessionLimits.messageBytesWithoutRecords else { return false }", "", "SessionTests"),
    Row("former memberships are all ended in one turn", IN_CHECK,
        "guard allowance.take(1 + SessionLimits.checksPerSignature) else { break }", "", "SessionTests"),
    Row("a table in check stays charged to its closed link", IN_CHECK,
        "where inCheck[index].holder == holder { inCheck[index].holder = FairShare.ownHolder }",
        "where inCheck[index].holder == holder { inCheck[index].holder = holder }", "SessionTests"),
    Row("frames waiting for a check outlive their link",
        "Sources/Node/Neighbours.swift", "    waitingFrames.remove(slot)\n", "", "NodeTests"),
    Row("a frame without room to wait is dropped silently", "Sources/Node/WaitingFrames.swift",
        "guard payload.byteCount <= Limits.advertisementBytesMax, share.mayTake(blocks, by: slot) else { return false }",
        "guard share.mayTake(blocks, by: slot) else { return true }", "NodeTests"),
    Row("a link with wrong deny-lists is not penalised",
        "Sources/Node/NodeTrust.swift", "      noteWrongSignature(on: slot, now)\n", "", "NodeTests"),
    Row("a part of a frame counts as a sign of life", "Sources/Node/Node.swift", "    links[slot].arrived(bytes.count, now: now)\n",
        "    links[slot].heard(bytes.count, now: now)\n", "NodeTests"),
    Row("incomplete frames postpone a ping for ever", "Sources/Link/Liveness.swift", "max(heardAt, min(arrivedAt, heardAt + silence))",
        "max(heardAt, arrivedAt)", "NodeTests"),
    Row("a handshake accepts a certificate chain of any length", CERTIFICATES,
        "if (count > 1 + MBEDTLS_X509_MAX_INTERMEDIATE_CA) return MBEDTLS_ERR_X509_FATAL_ERROR;", "",
        "SecureTransportTests.AttackTests"),
    Row("verification of a certificate chain has no cost limit",
        CERTIFICATES, " || cost + next > CHECK_COST_MAX", "", "SecureTransportTests"),
    Row("an RSA exponent of any length is accepted",
        CERTIFICATES, " || mbedtls_mpi_bitlen(&rsa->MBEDTLS_PRIVATE(E)) > RSA_EXPONENT_BITS_MAX", "",
        "SecureTransportTests"),
]
