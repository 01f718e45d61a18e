import Testing

@testable import Transfer

private func entry(_ path: String, _ size: Int?) -> Entry {
  try! Entry(path.split(separator: "/").map { Array($0.utf8) }, size: size.map { UInt64($0) })
}

@Test func `a file is offered, accepted, sent and placed`() throws {
  var exchange = try Exchange(content(2, and: 700_000))
  exchange.run()
  #expect(exchange.sent == .complete([.stored]) && exchange.received == .complete([.stored]))
  #expect(exchange.disk == exchange.source && exchange.placed == [0])
  #expect(exchange.moved == exchange.source[0].count && exchange.sender.bytesSent == UInt64(exchange.moved))
  #expect(exchange.sender.bytesDone == UInt64(exchange.moved) && exchange.receiver.bytesDone == UInt64(exchange.moved))
  #expect(exchange.sender.filesDone == 1 && exchange.receiver.filesDone == 1)
}

@Test func `files and folders are sent in one offer and placed as they were offered`() throws {
  var exchange = try Exchange(
    [
      entry("in", nil), entry("in/a", 3), entry("in/empty", 0), entry("in/more", nil), entry("in/more/b", 200_000),
      entry("none", nil), entry("z", 1),
    ], [[1, 2, 3], [], content(0, and: 200_000), [9]])
  exchange.run()
  #expect(exchange.sent == .complete([.stored, .stored, .stored, .stored]))
  #expect(exchange.disk == exchange.source && exchange.placed == [0, 2, 1])
}

@Test func `folders without files are placed before the sender is notified`() throws {
  var exchange = try Exchange([entry("a", nil), entry("a/b", nil), entry("c", nil)], [])
  exchange.run()
  #expect(exchange.sent == .complete([]) && exchange.received == .complete([]))
  #expect(exchange.placed == [0, 1] && exchange.log.last == .ready)
  // The sender offers the same folders again, as after a lost path. The folders are not placed a second time.
  exchange.sender = TransferSender(exchange.sender.manifest)
  exchange.receiver = TransferReceiver()
  exchange.run()
  #expect(exchange.sent == .complete([]) && exchange.placed == [0, 1])
}

@Test func `a declined offer carries its text`() throws {
  var exchange = try Exchange([1, 2, 3])
  exchange.decision = { receiver, _ in
    receiver.refuse(.declined, bytes("not now"))
    return nil
  }
  exchange.run()
  #expect(exchange.sent == .refused(.declined, text: bytes("not now")) && exchange.received == .refused(.declined))
  #expect(exchange.journal == [] && exchange.disk == [nil])
}

@Test func `free space and quota are checked before data is sent`() throws {
  var exchange = try Exchange(content(1))
  exchange.free = 1_048_575
  exchange.run()
  #expect(exchange.sent == .refused(.noSpace, text: []) && exchange.moved == 0)
  exchange = try Exchange(content(1))
  exchange.decision = { receiver, _ in receiver.accept(freeBytes: .max, bytesMax: 1_000_000) }
  exchange.run()
  #expect(exchange.sent == .refused(.tooLarge, text: []) && exchange.moved == 0)
}

@Test func `a sender's cancellation has a reason, and the receiver keeps the received bytes`() throws {
  var exchange = try Exchange(content(2))
  exchange.breaksAfter = 1_200_000
  exchange.run()
  exchange.sender.cancel(bytes("enough"))
  exchange.breaksAfter = .max
  while exchange.stepSender() { _ = exchange.stepReceiver() }
  #expect(exchange.sent == .cancelledHere)
  #expect(exchange.received == .cancelledByPeer(.wanted, text: bytes("enough")))
  #expect((exchange.disk[0]?.count ?? 0) >= 1_200_000 && exchange.placed == [])
}

@Test func `a receiver's cancellation has a reason`() throws {
  var exchange = try Exchange(content(2))
  exchange.breaksAfter = 1_200_000
  exchange.run()
  exchange.receiver.cancel(bytes("enough"))
  _ = exchange.stepReceiver()
  while exchange.stepSender() {}
  #expect(exchange.sent == .cancelledByPeer(.wanted, text: bytes("enough")))
  #expect(exchange.received == .cancelledHere)
}

@Test func `a full disk ends the transfer with that reason`() throws {
  var exchange = try Exchange(content(2))
  exchange.diskBytesMax = 1_500_000
  exchange.run()
  #expect(exchange.received == .storageFailed(isFull: true, text: bytes("full")))
  #expect(exchange.sent == .cancelledByPeer(.storageFull, text: bytes("full")))
}

@Test func `an unreadable file is not sent, and its folder stays incomplete`() throws {
  var exchange = try Exchange(
    [entry("in", nil), entry("in/a", 3), entry("in/b", 3), entry("z", 1)], [[1, 2, 3], [4, 5, 6], [7]])
  exchange.unreadable = [1]
  exchange.run()
  #expect(exchange.sent == .complete([.kept, .notSent, .stored]) && exchange.placed == [1])
  // Files that the receiver already holds are not sent again.
  exchange.unreadable = []
  let before = exchange.moved
  exchange.sender = TransferSender(exchange.sender.manifest)
  exchange.receiver = TransferReceiver()
  exchange.run()
  #expect(exchange.sent == .complete([.stored, .stored, .stored]) && exchange.moved - before == 3)
  #expect(exchange.placed == [1, 0])
}

@Test func `a file that became shorter is not sent`() throws {
  var exchange = try Exchange(content(1))
  exchange.source[0].removeLast()
  exchange.run()
  #expect(exchange.sent == .complete([.notSent]) && exchange.placed == [])
}

@Test func `an offer may contain 65,536 files`() throws {
  let count = 65_536
  var exchange = try Exchange(
    (0..<count).map { entry("\($0)", 0) }, Array(repeating: [], count: count))
  exchange.run()
  #expect(exchange.sent == .complete(Array(repeating: .stored, count: count)))
}
