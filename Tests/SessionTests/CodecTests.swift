import Primitives
import SealSupport
import SessionSupport
import Testing
import TestSupport

@testable import Session

private var key: StandInCryptography { StandInCryptography(Identity(1)) }
private func repeated(_ byte: String, _ count: Int) -> String { String(repeating: byte, count: count) }
private func signature(_ byte: UInt8) -> Signature { Signature(InlineArray(repeating: byte)) }
private func point(_ byte: UInt8) -> PublicPoint { PublicPoint(InlineArray { $0 == 0 ? 4 : byte }) }
private func address(_ byte: UInt8) -> MemberAddress {
  let word = UInt64(byte) * 0x0101_0101_0101_0101
  return MemberAddress(node: NodeID(high: word, low: word), endpoint: UInt32(truncatingIfNeeded: word))
}
private func refusal(_ body: () throws(SessionMessageError) -> Void) -> SessionMessageError? {
  do throws(SessionMessageError) {
    try body()
    return nil
  } catch { return error }
}

private let origin = SessionOrigin(
  founder: address(0x11), point: point(0x22), nonce: SessionID(high: 0x33, low: 0x44),
  rules: SessionRules(onlyFounderAdmits: false, onlySealed: true, membersMax: 8))
private let originBytes =
  repeated("11", 20) + "04" + repeated("22", 64) + "00000000000000330000000000000044" + "0208"

private let record = MemberRecord(
  session: origin.id(key), address: address(0x55), point: point(0x66),
  ticket: Ticket(
    version: 3, depth: 2, admitter: address(0x77), admission: signature(0x88), acceptance: signature(0x99)),
  root: Ticket(
    version: 1, depth: 1, admitter: address(0x11), admission: signature(0xaa), acceptance: signature(0xbb)),
  departure: Departure(isEjection: false, reason: .wanted, text: Array("bye".utf8), signature: signature(0xcc)))
private let recordBytes =
  "00 01" + repeated("55", 20) + "04" + repeated("66", 64)
  + "00000003 02" + repeated("77", 20) + repeated("88", 64) + repeated("99", 64)
  + "00000001 01" + repeated("11", 20) + repeated("aa", 64) + repeated("bb", 64)
  + "01 01 03 627965" + repeated("cc", 64)
private let entries = TableEntries(
  origins: [TableEntries.Origin(origin, key)], merges: [], records: [record])
private let entriesBytes = "01 00 01" + originBytes + recordBytes

@Suite struct SessionCodecTests {
  @Test func `the id of a session is a hash of its origin`() {
    #expect(origin.identifying == Array("causeway-session-1".utf8) + hex(originBytes))
    let digest = key.digest(origin.identifying.span.bytes)
    #expect(origin.id(key) == SessionID(high: digest.span.bytes.word64(0), low: digest.span.bytes.word64(8)))
  }

  @Test func `an invitation has its golden bytes`() throws {
    let invite = InviteMessage(
      number: 7, seconds: 30, from: 1, to: 2, memberCount: 3, origin: origin, context: Array("pw".utf8))
    let golden = hex("00000007 001e 00000001 00000002 03 00" + originBytes + "7077")
    #expect(invite.bytes == golden && invite.byteCount == golden.count)
    #expect(try InviteMessage(golden.span.bytes) == invite)
    for length in 0..<119 {
      #expect(
        refusal { () throws(SessionMessageError) in _ = try InviteMessage(golden.span.bytes.extracting(0..<length)) }
          == .truncated)
    }
    for (offset, byte, want) in [
      (4, 0xff, SessionMessageError.outOfRange), (14, 0, .outOfRange), (14, 65, .outOfRange), (15, 1, .reservedNotZero),
      (36, 5, .malformed), (117, 4, .reservedNotZero), (118, 1, .outOfRange), (118, 65, .outOfRange),
    ] {
      let wrong = golden.with { $0[offset] = UInt8(byte) }
      #expect(refusal { () throws(SessionMessageError) in _ = try InviteMessage(wrong.span.bytes) } == want)
    }
    let long = golden + [UInt8](repeating: 0, count: 4_095)
    #expect(refusal { () throws(SessionMessageError) in _ = try InviteMessage(long.span.bytes) } == .tooLong)
  }

  @Test func `answers have their golden bytes`() throws {
    let declined = AnswerMessage(number: 7, answer: .declined, explanation: Array("no".utf8))
    #expect(declined.bytes == hex("00000007 01 02 6e6f"))
    #expect(try AnswerMessage(declined.bytes.span.bytes, key) == declined)
    #expect(declined.byteCount == declined.bytes.count)
    let accepted = AnswerMessage(number: 7, answer: .accepted)
    #expect(accepted.bytes == hex("00000007 00 00 00"))
    #expect(try AnswerMessage(accepted.bytes.span.bytes, key) == accepted)
    #expect(accepted.byteCount == accepted.bytes.count)
    let offered = AnswerMessage(
      number: 7, answer: .accepted,
      offer: AnswerMessage.Offer(session: origin.id(key), signature: signature(0xdd), entries: entries))
    var id: [UInt8] = []
    id.append(bigEndian: origin.id(key).high)
    id.append(bigEndian: origin.id(key).low)
    #expect(offered.bytes == hex("00000007 00 00 01") + id + hex(repeated("dd", 64) + entriesBytes))
    #expect(try AnswerMessage(offered.bytes.span.bytes, key) == offered)
    #expect(offered.byteCount == offered.bytes.count)
    let other = offered.bytes.with { $0[7] ^= 1 }
    #expect(refusal { () throws(SessionMessageError) in _ = try AnswerMessage(other.span.bytes, key) } == .malformed)
    for (bytes, want) in [
      ("00000007 01 02 6e", SessionMessageError.truncated), ("00000007 07 00", .unknownCode),
      ("00000007 01 00 00", .tooLong),
      ("00000007 01 01 0a", .notText), ("00000007 00 00 02", .unknownCode), ("00000007 01 c9", .tooLong),
    ] {
      #expect(refusal { () throws(SessionMessageError) in _ = try AnswerMessage(hex(bytes).span.bytes, key) } == want)
    }
  }

  @Test func `a welcome has its golden bytes`() throws {
    let welcome = WelcomeMessage(
      number: 7, admission: WelcomeMessage.Admission(version: 4, depth: 2, signature: signature(0xee)),
      newcomers: [address(0x12)], entries: entries)
    let golden = hex("00000007 01 00000004 02" + repeated("ee", 64) + "01" + repeated("12", 20) + entriesBytes)
    #expect(welcome.bytes == golden && welcome.byteCount == golden.count)
    #expect(try WelcomeMessage(golden.span.bytes, key) == welcome)
    for length in 0..<golden.count {
      #expect(
        refusal { () throws(SessionMessageError) in
          _ = try WelcomeMessage(golden.span.bytes.extracting(0..<length), key)
        }
          != nil)
    }
    #expect(
      refusal { () throws(SessionMessageError) in _ = try WelcomeMessage((golden + [0]).span.bytes, key) } == .tooLong)
    let many = WelcomeMessage(
      number: 7, admission: nil, newcomers: Array(repeating: address(0x12), count: 17), entries: entries)
    #expect(
      refusal { () throws(SessionMessageError) in _ = try WelcomeMessage(many.bytes.span.bytes, key) } == .tooLong)
  }

  @Test func `the end of an invitation has its golden bytes`() throws {
    let end = EndMessage(number: 7, reason: .timedOut)
    #expect(end.bytes == hex("00000007 02 000000") && EndMessage.byteCount == end.bytes.count)
    #expect(try EndMessage(end.bytes.span.bytes) == end)
    for (bytes, want) in [
      ("00000007 02 0000", SessionMessageError.truncated), ("00000007 00 000000", .unknownCode),
      ("00000007 05 000000", .unknownCode), ("00000007 02 000001", .reservedNotZero),
      ("00000007 02 000000 00", .tooLong),
    ] {
      #expect(refusal { () throws(SessionMessageError) in _ = try EndMessage(hex(bytes).span.bytes) } == want)
    }
  }

  @Test func `a meet message has its golden bytes`() throws {
    let meet = MeetMessage(
      session: SessionID(high: 1, low: 2), from: 3, to: 4, number: 5, echo: 6,
      digest: TableDigest(InlineArray(repeating: 0xab)), window: 131_072)
    let golden = hex(
      "00000000000000010000000000000002 00000003 00000004 00000005 00000006" + repeated("ab", 16) + "0000000000020000")
    #expect(meet.bytes == golden)
    #expect(try MeetMessage(golden.span.bytes) == meet)
    for length in 0..<golden.count {
      #expect(
        refusal { () throws(SessionMessageError) in _ = try MeetMessage(golden.span.bytes.extracting(0..<length)) }
          == .truncated)
    }
    #expect(refusal { () throws(SessionMessageError) in _ = try MeetMessage((golden + [0]).span.bytes) } == .tooLong)
    for offset in [19, 23, 27] {
      let wrong = golden.with { $0[offset] = 0 }
      #expect(refusal { () throws(SessionMessageError) in _ = try MeetMessage(wrong.span.bytes) } == .outOfRange)
    }
  }

  @Test func `a table message has its golden bytes`() throws {
    let head = "00000000000000010000000000000002 00000003 00000004 01 000000" + repeated("ab", 16)
    var table = TableMessage(
      session: SessionID(high: 1, low: 2), from: 3, to: 4, asks: true,
      digest: TableDigest(InlineArray(repeating: 0xab)))
    #expect(table.bytes == hex(head) && table.byteCount == table.bytes.count)
    #expect(try TableMessage(hex(head).span.bytes, key) == table)
    table.entries = entries
    let golden = hex(head + entriesBytes)
    #expect(table.bytes == golden && table.byteCount == golden.count)
    #expect(try TableMessage(golden.span.bytes, key) == table)
    for length in 0..<golden.count where length != 44 {
      #expect(
        refusal { () throws(SessionMessageError) in _ = try TableMessage(golden.span.bytes.extracting(0..<length), key)
        }
          == .truncated)
    }
    let start = 44 + 3 + 103
    for (offset, byte, want) in [
      (24, 2, SessionMessageError.reservedNotZero), (25, 1, .reservedNotZero), (44, 0, .outOfRange), (44, 33, .tooLong),
      (45, 32, .tooLong), (46, 107, .tooLong), (start, 1, .malformed), (start + 1, 2, .reservedNotZero),
      (start + 22, 5, .malformed), (start + 91, 64, .outOfRange), (start + 393, 3, .unknownCode),
      (start + 394, 0, .unknownCode), (start + 395, 64, .tooLong), (start + 396, 0x0a, .notText),
    ] {
      let wrong = golden.with { $0[offset] = UInt8(byte) }
      #expect(
        refusal { () throws(SessionMessageError) in _ = try TableMessage(wrong.span.bytes, key) } == want,
        "byte \(offset)")
    }
  }

  @Test func `the table of a session without members fits one message`() {
    var longest = record
    longest.departure?.text = [UInt8](repeating: 0x61, count: SessionLimits.farewellBytesMax)
    let one = TableMessage(
      session: SessionID(high: 1, low: 2), from: 3, to: 4, asks: true, digest: TableDigest(InlineArray(repeating: 0)),
      entries: TableEntries(origins: entries.origins, merges: [], records: [longest])
    ).bytes.count
    let recordBytes = one - 44 - 3 - SessionOrigin.byteCount
    let all =
      44 + 3 + SessionLimits.originsMax * (SessionOrigin.byteCount + SessionMerge.byteCount) + SessionLimits.recordsMax
      * recordBytes
    #expect(all <= SessionLimits.tableBytesMax)
    // Each message that contains the table must fit with its head. The head of an offer is the longest.
    #expect(SessionLimits.tableBytesMax + 300 <= SessionLimits.messageBytesMax)
    #expect(SessionLimits.tableBytesMax + 75 + SessionLimits.pendingMembersMax * 20 <= SessionLimits.messageBytesMax)
  }

  @Test func `a window message and a session message have their golden bytes`() throws {
    let window = WindowMessage(number: 7, isPaused: true, limit: 0x1_0000_0000)
    #expect(window.bytes == hex("00000007 00000000 01 000000 0000000100000000"))
    #expect(try WindowMessage(window.bytes.span.bytes) == window)
    let ofStream = WindowMessage(number: 7, stream: 3, limit: 0x40000)
    #expect(ofStream.bytes == hex("00000007 00000003 00 000000 0000000000040000"))
    #expect(try WindowMessage(ofStream.bytes.span.bytes) == ofStream)
    for (bytes, want) in [
      ("00000007 00000000 02 000000 0000000100000000", SessionMessageError.reservedNotZero),
      ("00000007 00000003 01 000000 0000000100000000", .reservedNotZero),
      ("00000007 00000000 00 000001 0000000100000000", .reservedNotZero),
      ("00000007 00000000 00 000000 00000001000000", .truncated),
      ("00000007 00000000 00 000000 000000010000000000", .tooLong),
    ] {
      #expect(refusal { () throws(SessionMessageError) in _ = try WindowMessage(hex(bytes).span.bytes) } == want)
    }
    #expect(ApplicationMessage.bytes(7, [1, 2]) == hex("00000007 0102"))
    #expect(try ApplicationMessage.number(hex("00000007 0102").span.bytes) == 7)
    #expect(
      refusal { () throws(SessionMessageError) in _ = try ApplicationMessage.number(hex("000000").span.bytes) }
        == .truncated
    )
  }

  @Test func `a request for credit has its golden bytes`() throws {
    let need = NeedMessage(number: 7, givenBack: 0x4000, limit: 0x1_0000_0000)
    #expect(need.bytes == hex("00000007 0000000000004000 0000000100000000"))
    #expect(try NeedMessage(need.bytes.span.bytes) == need)
    for count in 0..<NeedMessage.byteCount {
      #expect(
        refusal { () throws(SessionMessageError) in _ = try NeedMessage(Array(need.bytes[..<count]).span.bytes) }
          == .truncated)
    }
    #expect(
      refusal { () throws(SessionMessageError) in _ = try NeedMessage((need.bytes + [0]).span.bytes) } == .tooLong)
  }

  @Test func `the messages of streams have their golden bytes`() throws {
    let open = OpenMessage(number: 7, stream: 3, window: 0x4000, name: Array("log".utf8))
    #expect(open.bytes == hex("00000007 00000003 0000000000004000 03 6c6f67"))
    #expect(try OpenMessage(open.bytes.span.bytes) == open)
    for (bytes, want) in [
      ("00000007 00000003 0000000000004000 03 6c6f", SessionMessageError.truncated),
      ("00000007 00000003 0000000000004000 03 6c6f6767", .tooLong),
      ("00000007 00000003 0000000000004000 00", .outOfRange), ("00000007 00000000 0000000000004000 01 61", .outOfRange),
      ("00000007 00000003 0000000000004000 01 0a", .notText),
      ("00000007 00000003 0000000000004000 40" + repeated("61", 64), .tooLong),
    ] {
      #expect(refusal { () throws(SessionMessageError) in _ = try OpenMessage(hex(bytes).span.bytes) } == want)
    }
    #expect(StreamBytes.bytes(7, 3, [1, 2]) == hex("00000007 00000003 0102"))
    let address = try StreamBytes.address(hex("00000007 00000003 0102").span.bytes)
    #expect(address.number == 7 && address.stream == 3)
    for (bytes, want) in [
      ("00000007 00000003", SessionMessageError.truncated), ("00000007 00000000 01", .outOfRange),
      ("00000007 00000003" + repeated("00", 15_361), .tooLong),
    ] {
      #expect(refusal { () throws(SessionMessageError) in _ = try StreamBytes.address(hex(bytes).span.bytes) } == want)
    }
    let finished = StreamEndMessage(number: 7, stream: 3, .finished(byteCount: 0x1_0000_0000))
    #expect(finished.bytes == hex("00000007 00000003 00 000000 0000000100000000"))
    #expect(try StreamEndMessage(finished.bytes.span.bytes) == finished)
    let reset = StreamEndMessage(number: 7, stream: 3, .reset(.tooMany))
    #expect(reset.bytes == hex("00000007 00000003 03 000000 0000000000000000"))
    #expect(try StreamEndMessage(reset.bytes.span.bytes) == reset)
    for (bytes, want) in [
      ("00000007 00000003 05 000000 0000000000000000", SessionMessageError.unknownCode),
      ("00000007 00000003 01 000000 0000000000000001", .reservedNotZero),
      ("00000007 00000003 00 000100 0000000000000000", .reservedNotZero),
      ("00000007 00000000 00 000000 0000000000000000", .outOfRange),
      ("00000007 00000003 00 000000 00000000000000", .truncated),
      ("00000007 00000003 00 000000 000000000000000000", .tooLong),
    ] {
      #expect(refusal { () throws(SessionMessageError) in _ = try StreamEndMessage(hex(bytes).span.bytes) } == want)
    }
  }

  @Test func `the endpoint of a service is the same after each start, and differs from other services`() {
    let type = Array("chat".utf8)
    let one = MemberAddress.endpoint(user: 1000, type: type, instance: [1], key)
    #expect(one == MemberAddress.endpoint(user: 1000, type: type, instance: [1], key))
    #expect(one != MemberAddress.endpoint(user: 1001, type: type, instance: [1], key))
    #expect(one != MemberAddress.endpoint(user: 1000, type: type, instance: [2], key))
  }
}
