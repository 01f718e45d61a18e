import CSystem
import Identity
import Primitives
import SecureTransport
import Testing

@testable import Trust

struct StoreTests {
  let box = Box()
  private final class Clock { var seconds: Int64 = 1_800_000_000 }
  private let clock = Clock()
  private var seconds: Int64 {
    get { clock.seconds }
    nonmutating set { clock.seconds = newValue }
  }

  private func store() throws -> TrustStore { try TrustStore(try StateDirectory(box.directory.path)) }

  /// The epoch of a start that takes place 15 minutes after the previous start. An epoch is the number that orders the
  /// starts of a node.
  private func start(_ store: TrustStore) throws -> UInt64 {
    seconds += 900
    return try store.nextEpoch(wallMilliseconds: 1000 * seconds).epoch
  }

  @Test func `the epoch increases at each start`() throws {
    let epochs = try (0..<5).map { _ in try start(store()) }
    #expect(epochs.map { $0 >> 32 } == [2, 4, 6, 8, 10])
    #expect(Set(epochs.map { UInt32(truncatingIfNeeded: $0) }).count > 1)
  }

  @Test func `a damaged state file is replaced by its previous version, and no epoch is used twice`() throws {
    for _ in 0..<3 { _ = try start(store()) }
    try box.corrupt("state")
    let fallen = try store()
    #expect(fallen.notice?.hasPrefix(box.directory.path + "/state is damaged: its previous version is used") == true)
    #expect(try start(fallen) >> 32 == 8)
    #expect(try store().notice == nil)
  }

  @Test func `a start without either version of the state file is an error`() throws {
    for _ in 0..<3 { _ = try start(store()) }
    try box.corrupt("state")
    try box.corrupt("state.old")
    #expect(throws: IdentityError.stateLost(path: box.directory.path + "/state")) { try store() }
    // An operator discards pins and revocations by removing both state files.
    for file in ["/state", "/state.old"] { try #require(unlink(box.directory.path + file) == 0) }
    #expect(try start(store()) >> 32 == 2)
  }

  @Test func `a revocation is stored in both versions of the state file`() throws {
    let keeper = try box.start()
    try keeper.revoke(id(1))
    try box.corrupt("state")
    #expect(try box.start().isDenied(id(1)))
    // The start writes both generations of the state again.
    _ = try start(store())
    try box.corrupt("state")
    #expect(try box.start().isDenied(id(1)))
  }

  @Test func `a revocation is stored in both versions also while a background write runs`() throws {
    let keeper = try box.start()
    let descriptor = try #require(keeper.store.writeInBackground())
    try keeper.revoke(id(1))
    for _ in 0..<4 where !keeper.store.isSettled {
      var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      #expect(poll(&polled, 1, 10_000) == 1)
      try keeper.store.writeEnded()
    }
    #expect(keeper.store.isSettled)
    try box.corrupt("state")
    #expect(try box.start().isDenied(id(1)))
  }

  @Test func `the epoch increases at each start even if the disk cannot be written`() throws {
    var epochs = [try start(store())]
    // A directory in place of the file that is written first makes every write fail, even by root.
    #expect(mkdir(box.directory.path + "/state.new", 0o700) == 0)
    for _ in 0..<3 {
      let broken = try store()
      seconds += 1
      let (epoch, failure) = try broken.nextEpoch(wallMilliseconds: 1000 * seconds)
      #expect(failure != nil)
      epochs.append(epoch)
    }
    // Another start, 250 ms after the last start and within the same second.
    let (epoch, _) = try store().nextEpoch(wallMilliseconds: 1000 * seconds + 250)
    epochs.append(epoch)
    #expect(rmdir(box.directory.path + "/state.new") == 0)
    epochs.append(try start(store()))
    #expect(zip(epochs, epochs.dropFirst()).allSatisfy { $0 < $1 }, "\(epochs)")
  }

  @Test func `a state that could not be written at the start is written later`() throws {
    _ = try start(store())
    #expect(mkdir(box.directory.path + "/state.new", 0o700) == 0)
    let broken = try store()
    let (epoch, _) = try broken.nextEpoch(wallMilliseconds: 1000 * seconds)
    #expect(rmdir(box.directory.path + "/state.new") == 0)
    try broken.save()
    #expect(try start(store()) > epoch)
  }

  @Test func `a change during a background write is written after it`() throws {
    let first = try store()
    let descriptor = try #require(first.writeInBackground())
    for seconds in Int64(1)...9 {
      first.state.keptSeconds = seconds
      try first.save()
    }
    for _ in 0..<4 where !first.isSettled {
      var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      #expect(poll(&polled, 1, 10_000) == 1)
      try first.writeEnded()
    }
    #expect(first.isSettled)
    #expect(try store().state.keptSeconds == 9)
    first.state.keptSeconds = 10
    try first.save()
    try first.settle()
    #expect(try store().state.keptSeconds == 10)
  }

  @Test func `a state is decoded as it was encoded`() throws {
    var state = TrustState()
    state.epochCounter = 0xFFFF_FFFF
    state.keptSeconds = 1_795_219_200
    state.pins = [
      Pin(node: id(1), name: name("bob"), isByOperator: true), Pin(node: id(2), name: [], isByOperator: false),
    ]
    state.denied = [id(1), id(2)]
    state.deniedSerial = 9
    state.deniedSeconds = 5
    state.lists = [[1, 2, 3], []]
    #expect(TrustState(state.encoded()) == state)
    let bytes = state.encoded()
    for count in 0..<bytes.count { #expect(TrustState(Array(bytes[..<count])) == nil) }
    #expect(TrustState(bytes + [0]) == nil)
  }

  @Test func `the largest possible state fits its file`() {
    var state = TrustState()
    for number in 0..<UInt64(TrustLimits.pinsMax) {
      state.pins.append(Pin(node: id(number), name: [UInt8](repeating: 0x61, count: 63), isByOperator: false))
    }
    for number in 0..<UInt64(Limits.deniedMax) { state.denied.append(id(number)) }
    state.lists = [[UInt8]](repeating: [UInt8](repeating: 1, count: 2048), count: TrustLimits.operatorsMax)
    #expect(state.encoded().count <= TrustState.bytesMax)
    #expect(TrustState(state.encoded()) == state)
  }

  @Test func `the epoch counter starts again after its maximum`() throws {
    let last = try store()
    last.state.epochCounter = .max - 3
    #expect(try start(last) >> 32 == 0xFFFF_FFFE)
    #expect(try start(store()) >> 32 == 2)
  }
}
