import Glibc
import Testing
import Transfer

@testable import Causeway
@testable import TransferFiles

private let big = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 16) }

/// Two connected applications with the source directory of the sender and the destination directory of the receiver.
private struct Transferring {
  let wire: Wire
  let from: Scratch
  let into: Scratch

  init() async throws { (wire, from, into) = (try await Wire(), try Scratch(), try Scratch()) }

  func offer(_ names: String...) async throws -> Causeway.Transfer {
    try await wire.sender.offer(names.map { from.path + "/" + $0 }, to: Wire.two)
  }
}

private func end(_ transfer: Causeway.Transfer) async -> CausewayError? {
  await thrown { () async throws(CausewayError) in try await transfer.finish() }
}

@Test(.timeLimit(.minutes(1))) func `a folder is offered, accepted and received completely`() async throws {
  let test = try await Transferring()
  try test.from.write("in/a", [1, 2, 3])
  try test.from.write("in/deep/b", big)
  try test.from.write("in/empty", [])
  let sending = try await test.offer("in"), offer = try await test.wire.offered()
  #expect(offer.name == "in" && offer.byteCount == 3_000_003 && offer.fileCount == 3)
  #expect(offer.from == member(.connected, Wire.one))
  #expect(await offer.bytesHeld(in: test.into.path) == 0)
  let receiving = try await offer.accept(into: test.into.path)
  #expect(try await receiving.finish() == [test.into.path + "/in"])
  #expect(try await sending.finish() == [test.from.path + "/in"])
  #expect(test.into.content("in/deep/b") == big && test.into.content("in/a") == [1, 2, 3])
  #expect(test.into.content("in/empty") == [] && test.into.names == ["in"])
}

@Test(.timeLimit(.minutes(1))) func `the progress of a transfer is reported up to its end`() async throws {
  let test = try await Transferring()
  try test.from.write("a", big)
  let sending = try await test.offer("a"), receiving = try await test.wire.offered().accept(into: test.into.path)
  for transfer in [sending, receiving] {
    var last: Causeway.Transfer.Progress?, before: UInt64 = 0
    for try await progress in transfer.progress {
      #expect(progress.bytesDone >= before && progress.byteCount == 3_000_000 && progress.fileCount == 1)
      (last, before) = (progress, progress.bytesDone)
    }
    #expect(last?.state == .ended && last?.bytesDone == 3_000_000 && last?.bytesMoved == 3_000_000)
    #expect(last?.filesDone == 1)
  }
}

@Test(.timeLimit(.minutes(1))) func `a received file gets a number if its name is taken`() async throws {
  let test = try await Transferring()
  try test.from.write("foto.jpg", [1])
  try test.into.write("foto.jpg", [2])
  let sending = try await test.offer("foto.jpg")
  let paths = try await test.wire.offered().accept(into: test.into.path).finish()
  #expect(paths == [test.into.path + "/foto-2.jpg"])
  _ = try await sending.finish()
  #expect(test.into.content("foto.jpg") == [2] && test.into.content("foto-2.jpg") == [1])
}

@Test(.timeLimit(.minutes(1))) func `an offer is declined with a text, or by dropping it`() async throws {
  let test = try await Transferring()
  try test.from.write("a", [1])
  var sending = try await test.offer("a")
  try await test.wire.offered().decline("not now")
  var error = await end(sending)
  #expect(error?.reason == .declined && error?.text == "declined: not now")
  sending = try await test.offer("a")
  do { _ = try await test.wire.offered() }
  error = await end(sending)
  #expect(error?.reason == .declined && test.into.names == [])
}

@Test(.timeLimit(.minutes(1))) func `a transfer continues after a lost path without a second question`() async throws {
  let test = try await Transferring()
  try test.from.write("a", big)
  test.wire.breakAfter(1_500_000)
  let sending = try await test.offer("a"), receiving = try await test.wire.offered().accept(into: test.into.path)
  #expect(try await receiving.finish() == [test.into.path + "/a"])
  _ = try await sending.finish()
  #expect(test.into.content("a") == big && test.wire.streams == 4)
  // Only the bytes in flight at the break were sent twice. The rest of the difference is records.
  #expect(test.wire.written - big.count < 300_000)
  #expect(test.into.names == ["a"])
}

@Test(.timeLimit(.minutes(1))) func `a restarted receiver continues from its partial file`() async throws {
  let test = try await Transferring()
  try test.from.write("a", big)
  do {
    let sending = try await test.offer("a"), receiving = try await test.wire.offered().accept(into: test.into.path)
    for try await progress in receiving.progress where progress.bytesDone > 1_500_000 { break }
    // The two connections to the daemons close, so neither application can send a last message.
    for end in test.wire.ends { end.node.close() }
    #expect(await end(receiving)?.code == .notConnected)
    #expect(await end(sending)?.code == .notConnected)
  }
  #expect(test.into.names.count == 1)
  let wire = try await Wire()
  let sending = try await wire.sender.offer([test.from.path + "/a"], to: Wire.two), offer = try await wire.offered()
  let held = await offer.bytesHeld(in: test.into.path)
  #expect(held >= 1_048_576)
  _ = try await offer.accept(into: test.into.path).finish()
  _ = try await sending.finish()
  #expect(test.into.content("a") == big && test.into.names == ["a"])
  #expect(wire.written < big.count - Int(held) + 10_000)
}

@Test(.timeLimit(.minutes(1))) func `either end cancels a transfer with a text`() async throws {
  let test = try await Transferring()
  try test.from.write("a", big)
  for cancelsSender in [true, false] {
    let sending = try await test.offer("a"), receiving = try await test.wire.offered().accept(into: test.into.path)
    (cancelsSender ? sending : receiving).cancel("enough")
    for (transfer, isOwn) in [(sending, cancelsSender), (receiving, !cancelsSender)] {
      let error = await end(transfer)
      #expect(
        error?.code == .cancelled && error?.text.hasSuffix("enough") == !isOwn, "\(cancelsSender): \(error?.text ?? "")"
      )
    }
  }
}

@Test(.timeLimit(.minutes(1))) func `a transfer is cancelled with its task, or by dropping it`() async throws {
  let test = try await Transferring()
  try test.from.write("a", big)
  let sending = try await test.offer("a"), offer = try await test.wire.offered()
  let finishing = Task { await end(sending) }
  finishing.cancel()
  #expect(await finishing.value?.reason == .cancelled)
  do { _ = try await test.offer("a") }
  let late = await thrown { () async throws(CausewayError) in try await offer.accept(into: test.into.path).finish() }
  #expect(late?.code == .cancelled || late?.reason == .ended)
}

@Test(.timeLimit(.minutes(1))) func `an offer stays open after an attempt with an unusable directory`() async throws {
  let test = try await Transferring()
  try test.from.write("a", [1])
  let sending = try await test.offer("a"), offer = try await test.wire.offered()
  let error = await thrown { () async throws(CausewayError) in try await offer.accept(into: test.into.path + "/none") }
  #expect(error?.reason == .storage && error?.text.contains("none") == true)
  _ = try await offer.accept(into: test.into.path).finish()
  _ = try await sending.finish()
  let again = await thrown { () async throws(CausewayError) in try await offer.accept(into: test.into.path) }
  #expect(again?.reason == .ended)
}

@Test(.timeLimit(.minutes(1))) func `an offer above the size limit is refused before data is sent`() async throws {
  let test = try await Transferring()
  try test.from.write("a", big)
  let sending = try await test.offer("a"), offer = try await test.wire.offered()
  let error = await thrown { () async throws(CausewayError) in
    try await offer.accept(into: test.into.path, bytesMax: 1_000)
  }
  #expect(error?.reason == .noSpace)
  #expect(await end(sending)?.reason == .noSpace)
  #expect(test.into.names == [] && test.wire.written < 1_000)
}

@Test(.timeLimit(.minutes(1))) func `the error about a file that cannot be offered contains its path`() async throws {
  let test = try await Transferring()
  try test.from.write("in/a", [1])
  symlink("/etc/passwd", test.from.path + "/in/link")
  for (name, reason, word) in [
    ("none", CausewayError.Reason.storage, "none"), ("in", .invalid, "in/link: symbolic links"),
    ("..", .invalid, ".."),
  ] {
    let error = await thrown { () async throws(CausewayError) in
      try await test.wire.sender.offer([test.from.path + "/" + name], to: Wire.two)
    }
    #expect(error?.reason == reason && error?.text.contains(word) == true, "\(error?.text ?? "")")
  }
  let twice = await thrown { () async throws(CausewayError) in
    try await test.wire.sender.offer([test.from.path + "/in/a", test.from.path + "/in/a/"], to: Wire.two)
  }
  #expect(twice?.reason == .invalid)
  let nobody = await thrown { () async throws(CausewayError) in
    try await test.wire.sender.offer([test.from.path + "/in/a"], to: .numbered(9))
  }
  #expect(nobody?.reason == .outOfReach && test.wire.streams == 0)
}

@Test(.timeLimit(.minutes(1))) func `a file that changed after it was offered is not sent`() async throws {
  let test = try await Transferring()
  try test.from.write("in/a", [1])
  try test.from.write("in/b", [2])
  let sending = try await test.offer("in"), offer = try await test.wire.offered()
  try await Task.sleep(for: .milliseconds(20))
  try test.from.write("in/b", [3])
  let receiving = try await offer.accept(into: test.into.path)
  let error = await end(sending)
  #expect(error?.reason == .incomplete && error?.text.contains("in/b: it changed") == true, "\(error?.text ?? "")")
  #expect(await end(receiving)?.reason == .incomplete)
  #expect(test.into.names.count == 1 && test.into.names[0].hasSuffix(".causeway-part"))
}

@Test(.timeLimit(.minutes(1))) func `no symbolic link in the destination leads a transfer out of it`() async throws {
  let test = try await Transferring(), elsewhere = try Scratch()
  try test.from.write("in/a", big)
  let sending = try await test.offer("in"), offer = try await test.wire.offered()
  let receiving = try await offer.accept(into: test.into.path)
  for try await progress in receiving.progress where progress.bytesDone > 0 { break }
  receiving.cancel()
  _ = await end(receiving)
  _ = await end(sending)
  // Replaces the folder of the received files by a symbolic link to another directory.
  let partial = test.into.path + "/" + test.into.names[0]
  rename(partial + "/files", partial + "/old")
  symlink(elsewhere.path, partial + "/files")
  let again = try await test.offer("in"), second = try await test.wire.offered()
  let error = await thrown { () async throws(CausewayError) in try await second.accept(into: test.into.path) }
  #expect(error?.reason == .storage && elsewhere.names == [])
  second.decline()
  _ = await end(again)
}

@Test(.timeLimit(.minutes(1))) func `a partial file is removed after a day unless it is in use`() async throws {
  let test = try await Transferring()
  try test.into.write(".old.00000000000000000000000000000000.causeway-part/journal", [1])
  try test.into.write(".new.00000000000000000000000000000000.causeway-part/journal", [1])
  try test.into.write(".used.00000000000000000000000000000000.causeway-part/journal", [1])
  let folder = try Files.folder(path: test.into.path)
  let used = try Files.read(
    bytes("journal"), in: Files.folder(bytes(".used.00000000000000000000000000000000.causeway-part"), in: folder))
  let lock = try #require(FileLock(used))
  for name in ["old", "used"] {
    var times = [timeval(tv_sec: 1_000, tv_usec: 0), timeval(tv_sec: 1_000, tv_usec: 0)]
    utimes(test.into.path + "/.\(name).00000000000000000000000000000000.causeway-part/journal", &times)
  }
  withExtendedLifetime(lock) { Partial.removeOld(in: folder) }
  #expect(test.into.names.map { String($0.prefix(5)) } == [".new.", ".used"])
}

@Test func `a partial file is unlocked even if a child process has a copy of its descriptor`() throws {
  let into = try Scratch()
  let folder = try Files.folder(path: into.path)
  var copy: CInt = -1
  do {
    let journal = try Files.write(bytes("journal"), in: folder)
    let lock = try #require(FileLock(journal))
    #expect(FileLock(try Files.write(bytes("journal"), in: folder)) == nil)
    copy = dup(journal.number)
    withExtendedLifetime(lock) {}
  }
  #expect(FileLock(try Files.write(bytes("journal"), in: folder)) != nil)
  close(copy)
}

@Test(.timeLimit(.minutes(1))) func `the stream names of transfers are reserved`() async throws {
  let test = try await Transferring()
  let error = await thrown { () async throws(CausewayError) in
    try await test.wire.sender.openStream("causeway:mine", to: Wire.two)
  }
  #expect(error?.reason == .invalid)
  // Two streams are refused without asking the application: one with an unknown reserved name, and an answer that
  // nothing requested.
  for (index, name) in ["causeway:later", "causeway:answer:0123456789abcdef"].enumerated() {
    test.wire.open(name, to: 1, UInt32(77 + index))
    #expect(try await test.wire.ends[1].daemon.asked(14).fields.prefix(5) == word(UInt32(77 + index)) + [0])
  }
}

@Test(.timeLimit(.minutes(1))) func `an offer beyond the limit is refused`() async throws {
  let test = try await Transferring()
  for number in 0..<9 {
    test.wire.open("causeway:resource:0123456789abcdef:000000000000000\(number)", to: 1, UInt32(70 + number))
  }
  var refused = 0
  for _ in 0..<9 where try await test.wire.ends[1].daemon.asked(14).fields[4] == 0 { refused += 1 }
  #expect(refused == 1)
}

@Test(.timeLimit(.minutes(1))) func `a member that holds all slots for offers loses one to another member`()
  async throws
{
  let test = try await Transferring(), end = test.wire.ends[1]
  for number in 0..<8 {
    test.wire.open("causeway:resource:0123456789abcdef:000000000000000\(number)", to: 1, UInt32(70 + number))
    #expect(try await end.daemon.asked(14).fields[4] == 1)
  }
  let name = "causeway:resource:0123456789abcdef:00000000000000ff"
  end.daemon.tell(streamPacket(end.number, 90, .numbered(3), name))
  // The member with all slots loses one of them: one of its offers is postponed, and the other member's offer is
  // accepted.
  var postponed = 0, taken = 0
  while postponed == 0 || taken == 0 {
    switch try await end.daemon.askedNext([14, 18]) {
    case let asked where asked.type == 14: taken += Int(asked.fields[4])
    case let asked: postponed += asked.fields.count == 5 && asked.fields[4] == 1 ? 1 : 0
    }
  }
  #expect(taken == 1)
}

@Test(.timeLimit(.minutes(3))) func `a transfer that lost its slot continues when its sender tries again`()
  async throws
{
  let test = try await Transferring(), content = big + big
  try test.from.write("a", content)
  let sending = try await test.offer("a"), offer = try await test.wire.offered()
  let receiving = try await offer.accept(into: test.into.path)
  while test.wire.written < 1_000_000 { try await Task.sleep(for: .milliseconds(1)) }
  offer.run.giveWay()
  #expect(try await receiving.finish() == [test.into.path + "/a"])
  _ = try await sending.finish()
  #expect(test.into.content("a") == content && test.wire.streams == 4)
  #expect(test.wire.written - content.count < 2_000_000)
}

@Test(.timeLimit(.minutes(1))) func `an offer without a slot is repeated until it gets one`() async throws {
  let test = try await Transferring()
  try test.from.write("a", [1])
  var sendings: [Causeway.Transfer] = [], offers: [Offer] = []
  for _ in 0..<Limits.offersMax {
    sendings.append(try await test.offer("a"))
    offers.append(try await test.wire.offered())
  }
  let before = test.wire.streams, late = try await test.offer("a")
  // The second stream of the late offer shows that the receiver refused its first stream.
  while test.wire.streams < before + 2 { try await Task.sleep(for: .milliseconds(20)) }
  try await offers.removeFirst().decline("not now")
  _ = try await test.wire.offered().accept(into: test.into.path).finish()
  #expect(try await late.finish() == [test.from.path + "/a"] && test.into.names == ["a"])
}

@Test func `the streams of transfers are recognised by their names`() {
  let offer = ResourceStream.offer(resource: 0x0123_4567_89ab_cdef, attempt: 0xff)
  #expect(offer.text == "causeway:resource:0123456789abcdef:00000000000000ff" && ResourceStream(offer.name) == offer)
  let answer = ResourceStream.answer(attempt: 0xff)
  #expect(answer.text == "causeway:answer:00000000000000ff" && ResourceStream(answer.name) == answer)
  for name in [
    "log", "causeway:", "causeway:answer:", "causeway:answer:00000000000000fF", "causeway:resource:0123456789abcdef",
    "causeway:answer:00000000000000ff:00", "causeway:resource:0123456789abcdef-00000000000000ff",
  ] { #expect(ResourceStream(name) == nil, "\(name)") }
  #expect(offer.name.count <= Limits.nameBytesMax)
}
