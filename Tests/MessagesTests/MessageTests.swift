import Messages
import Testing

@Suite struct TextMessageTests {
  @Test func `a text is its UTF-8 and nothing else`() throws {
    let text = try TextMessage(utf8: Array("grüß dich 🌉".utf8))
    #expect(text.message == Message(kind: .text, bytes: Array("grüß dich 🌉".utf8)))
    #expect(try TextMessage(text.message.bytes.span.bytes) == text)
  }

  @Test func `texts of no bytes and of more than 4096 are refused`() {
    #expect(refusal { () throws(MessageRefusal) in _ = try TextMessage(utf8: []) } == .empty)
    let longest = [UInt8](repeating: 0x61, count: 4_096)
    #expect(refusal { () throws(MessageRefusal) in _ = try TextMessage(utf8: longest) } == nil)
    #expect(refusal { () throws(MessageRefusal) in _ = try TextMessage(utf8: longest + [0x61]) } == .tooLong)
  }

  @Test(arguments: [
    "80", "c0af", "c1bf", "c2", "e0809f", "e08080", "eda080", "edbfbf", "f0808080", "f08f8080", "f4908080", "f5808080",
    "ff", "61e282", "e28261", "f09f8c",
  ]) func `malformed UTF-8 is refused`(_ hex: String) {
    #expect(refusal { () throws(MessageRefusal) in _ = try TextMessage(utf8: bytes(hex)) } == .notUTF8)
  }

  @Test(arguments: ["00", "7f", "c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbf", "f0908080", "f48fbfbf"])
  func `the first and last of every length of UTF-8 are accepted`(_ hex: String) {
    #expect(refusal { () throws(MessageRefusal) in _ = try TextMessage(utf8: bytes(hex)) } == nil)
  }
}

@Suite struct ControlMessageTests {
  @Test func `a control message has its golden vector`() throws {
    let value = ControlMessage(code: .noListener, kind: 0x2a)
    #expect(value.message == Message(kind: .control, bytes: bytes("012a0000")))
    #expect(try ControlMessage(bytes("012a0000").span.bytes) == value)
  }

  @Test func `control messages that are not legal are refused`() {
    for (hex, want) in [
      ("012a00", MessageRefusal.tooShort), ("012a000000", .tooLong), ("002a0000", .unknownCode),
      ("022a0000", .unknownCode), ("012a0100", .reservedNotZero), ("012a0001", .reservedNotZero),
    ] {
      #expect(refusal { () throws(MessageRefusal) in _ = try ControlMessage(bytes(hex).span.bytes) } == want)
    }
  }
}

@Suite struct ResourceMessageTests {
  private let goldenOffer =
    bytes("00000005 0000000000100000") + digestBytes + bytes("09") + Array("photo.jpg".utf8)
  private let goldenAnswer = bytes("00000005 12 0000 04 0000000000003c00") + Array("full".utf8)
  private let goldenCancel = bytes("00000005 02 03 00 02") + Array("zz".utf8)

  private func refused(offer octets: [UInt8]) -> MessageRefusal? {
    refusal { () throws(MessageRefusal) in _ = try ResourceOffer(octets.span.bytes) }
  }
  private func refused(answer octets: [UInt8]) -> MessageRefusal? {
    refusal { () throws(MessageRefusal) in _ = try ResourceAnswer(octets.span.bytes) }
  }
  private func refused(chunk octets: [UInt8]) -> MessageRefusal? {
    refusal { () throws(MessageRefusal) in _ = try ResourceChunk(octets.span.bytes) }
  }
  private func refused(cancel octets: [UInt8]) -> MessageRefusal? {
    refusal { () throws(MessageRefusal) in _ = try ResourceCancel(octets.span.bytes) }
  }

  @Test func `an offer has its golden vector`() throws {
    let value = offer(size: 1 << 20)
    #expect(value.message == Message(kind: .resourceOffer, bytes: goldenOffer))
    #expect(try ResourceOffer(goldenOffer.span.bytes) == value)
    #expect(value.digest.bytes == digestBytes)
  }

  @Test func `offers that are not legal are refused`() {
    for count in 0..<goldenOffer.count { #expect(refused(offer: Array(goldenOffer[..<count])) == .tooShort) }
    #expect(refused(offer: goldenOffer + [0]) == .tooLong)
    #expect(refused(offer: Array(changed(goldenOffer, 44, "00")[..<45])) == .empty)
    #expect(refused(offer: changed(goldenOffer, 4, "8000000000000001")) == .offsetTooLarge)
    #expect(refused(offer: changed(goldenOffer, 50, "ff")) == .notUTF8)
  }

  @Test func `an answer has its golden vector`() throws {
    let value = ResourceAnswer(
      transfer: 5, status: .storageFailed, resumeOffset: 15_360, explanation: Array("full".utf8))
    #expect(value.message == Message(kind: .resourceAnswer, bytes: goldenAnswer))
    #expect(try ResourceAnswer(goldenAnswer.span.bytes) == value)
  }

  @Test func `answers that are not legal are refused`() {
    for count in 0..<goldenAnswer.count { #expect(refused(answer: Array(goldenAnswer[..<count])) == .tooShort) }
    #expect(refused(answer: goldenAnswer + [0]) == .tooLong)
    #expect(refused(answer: changed(goldenAnswer, 4, "04")) == .unknownCode)
    #expect(refused(answer: changed(goldenAnswer, 5, "01")) == .reservedNotZero)
    #expect(refused(answer: changed(goldenAnswer, 6, "01")) == .reservedNotZero)
    #expect(refused(answer: changed(goldenAnswer, 8, "8000000000000001")) == .offsetTooLarge)
    #expect(refused(answer: changed(goldenAnswer, 16, "80")) == .notUTF8)
    let long = changed(goldenAnswer, 7, "c9") + [UInt8](repeating: 0x61, count: 197)
    #expect(refused(answer: long) == .tooLong)
  }

  @Test func `a long explanation is cut between characters`() {
    let value = ResourceAnswer(
      transfer: 1, status: .declined, explanation: [0x61] + [UInt8]((0..<150).flatMap { _ in [0xc3, 0xa9] as [UInt8] }))
    #expect(value.explanation.count == 199)
  }

  @Test func `a chunk has its golden vector`() throws {
    let golden = bytes("00000005 0000000000003c00 abcd")
    let value = try ResourceChunk(transfer: 5, offset: 15_360, data: [0xab, 0xcd])
    #expect(value.message == Message(kind: .resourceChunk, bytes: golden))
    #expect(try ResourceChunk(golden.span.bytes) == value)
  }

  @Test func `chunks that are not legal are refused`() {
    let head = bytes("00000005 0000000000003c00")
    for count in 0..<head.count { #expect(refused(chunk: Array(head[..<count])) == .tooShort) }
    #expect(refused(chunk: head) == .empty)
    #expect(refused(chunk: head + [UInt8](repeating: 0, count: 15_360)) == nil)
    #expect(refused(chunk: head + [UInt8](repeating: 0, count: 15_361)) == .tooLong)
    #expect(refused(chunk: changed(head, 4, "ffffffffffffffff") + [0]) == .offsetTooLarge)
  }

  @Test func `an end has its golden vector, and no other length`() throws {
    #expect(ResourceEnd(transfer: 5).message == Message(kind: .resourceEnd, bytes: bytes("00000005")))
    #expect(try ResourceEnd(bytes("00000005").span.bytes).transfer == 5)
    #expect(refusal { () throws(MessageRefusal) in _ = try ResourceEnd(bytes("000005").span.bytes) } == .tooShort)
    #expect(refusal { () throws(MessageRefusal) in _ = try ResourceEnd(bytes("0000000500").span.bytes) } == .tooLong)
  }

  @Test func `a cancellation has its golden vector`() throws {
    let value = ResourceCancel(transfer: 5, role: .receiver, reason: .timedOut, explanation: Array("zz".utf8))
    #expect(value.message == Message(kind: .resourceCancel, bytes: goldenCancel))
    #expect(try ResourceCancel(goldenCancel.span.bytes) == value)
  }

  @Test func `cancellations that are not legal are refused`() {
    for count in 0..<goldenCancel.count { #expect(refused(cancel: Array(goldenCancel[..<count])) == .tooShort) }
    #expect(refused(cancel: goldenCancel + [0]) == .tooLong)
    #expect(refused(cancel: changed(goldenCancel, 4, "00")) == .unknownCode)
    #expect(refused(cancel: changed(goldenCancel, 4, "03")) == .unknownCode)
    #expect(refused(cancel: changed(goldenCancel, 5, "05")) == .unknownCode)
    #expect(refused(cancel: changed(goldenCancel, 6, "01")) == .reservedNotZero)
    #expect(refused(cancel: changed(goldenCancel, 8, "ff")) == .notUTF8)
  }

  @Test func `messages are addressed to the other role`() {
    func address(_ message: Message) -> ResourceAddress? { ResourceAddress(message.kind, message.bytes.span.bytes) }
    let toReceiver = ResourceAddress(transfer: 5, role: .receiver)
    let toSender = ResourceAddress(transfer: 5, role: .sender)
    #expect(address(offer(size: 1).message) == toReceiver)
    #expect(address(ResourceEnd(transfer: 5).message) == toReceiver)
    #expect(address(ResourceAnswer(transfer: 5, status: .busy).message) == toSender)
    #expect(address(ResourceCancel(transfer: 5, role: .sender, reason: .wanted).message) == toReceiver)
    #expect(address(ResourceCancel(transfer: 5, role: .receiver, reason: .wanted).message) == toSender)
    #expect(address(Message(kind: .text, bytes: [0, 0, 0, 5])) == nil)
    #expect(address(Message(kind: .resourceEnd, bytes: [0, 0, 5])) == nil)
    #expect(address(toReceiver.unknownTransfer) == toSender)
  }
}

@Suite struct ResourceNameTests {
  private func sanitised(_ name: String) -> String {
    String(decoding: ResourceName.sanitised(Array(name.utf8)), as: UTF8.self)
  }

  @Test(arguments: ["photo.jpg", "a", "Grüße aus Köln.txt", "🌉", "a..b", "name with spaces", "x-y"])
  func `harmless names stay as they are`(_ name: String) {
    #expect(sanitised(name) == name)
    #expect(ResourceName.isSafe(Array(name.utf8)))
  }

  @Test(arguments: [
    ("../../etc/passwd", "_._.._etc_passwd"), ("/etc/passwd", "_etc_passwd"), (".", "_"), ("..", "_."),
    (".bashrc", "_bashrc"), ("-rf", "_rf"), ("a\\b", "a_b"), ("a\u{0}b", "a_b"), ("a\nb\u{7f}", "a_b_"),
    ("a\u{85}b", "a_b"), ("gpj.\u{202e}exe", "gpj._exe"), ("a\u{2066}b", "a_b"), ("a\u{2028}b", "a_b"), ("", "unnamed"),
  ]) func `unsafe names are made safe`(_ name: String, _ safe: String) {
    #expect(sanitised(name) == safe)
    #expect(!ResourceName.isSafe(Array(name.utf8)))
  }

  @Test func `bytes that are not UTF-8 are replaced`() {
    #expect(ResourceName.sanitised([0x61, 0xff, 0xe2, 0x80]) == Array("a___".utf8))
  }

  @Test func `a long name is cut between characters`() {
    let name = [0x61] + [UInt8]((0..<127).flatMap { _ in [0xc3, 0xa9] as [UInt8] })
    #expect(name.count == 255)
    let safe = ResourceName.sanitised(name)
    #expect(safe.count == 239)
    #expect(safe == Array(name[..<239]))
  }

  @Test func `whatever comes out is safe`() {
    for first in UInt8.min...UInt8.max {
      for second: UInt8 in [0, 0x2e, 0x2f, 0x80, 0xa8, 0xff] {
        #expect(ResourceName.isSafe(ResourceName.sanitised([first, second, 0x80, 0xae])))
      }
    }
  }
}
