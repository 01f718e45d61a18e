import Glibc
import Synchronization
import Testing

@testable import Causeway
@testable import TransferFiles

/// Two applications in one session. The test plays the daemons of both applications and carries their streams.
final class Wire: Sendable {
  private struct Carried {
    let opener: Int
    let number: UInt32
    let received: UInt32
    var taker: UInt32?
    var isOver = false
  }
  private struct State {
    var streams: [Carried] = []
    var last: UInt32 = 0
    /// The number of bytes that the sending application has written on its streams.
    var written = 0
    /// The number of written bytes after which all streams are lost.
    var breaksAfter = Int.max
    var isBroken = false
  }

  let ends: [Bench]
  private let state = Mutex(State())

  static let one = Address.numbered(1), two = Address.numbered(2)

  init() async throws {
    ends = [try await Bench(Self.two), try await Bench(Self.one)]
    for end in 0...1 { ends[end].daemon.watch { [weak self] asked in self?.carry(end, asked) } }
  }

  var sender: Session { ends[0].session }
  var receiver: Session { ends[1].session }
  var streams: Int { state.withLock { $0.streams.count } }
  var written: Int { state.withLock { $0.written } }

  /// Loses all streams once, as soon as this many bytes were written.
  func breakAfter(_ bytes: Int) { state.withLock { $0.breaksAfter = bytes } }

  /// Announces an incoming stream to an application, although no other application opened it.
  func open(_ name: String, to end: Int, _ received: UInt32) {
    ends[end].daemon.tell(streamPacket(ends[end].number, received, end == 0 ? Self.two : Self.one, name))
  }

  private func carry(_ end: Int, _ asked: DaemonStandIn.Asked) {
    guard (13...18).contains(asked.type) else { return }
    let fields = asked.fields
    func number(_ offset: Int) -> UInt32 { fields[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } }
    func limit(_ offset: Int) -> UInt64 { fields[offset..<offset + 8].reduce(0) { $0 << 8 | UInt64($1) } }
    /// The packets to send to each of the two applications.
    var told: [(end: Int, packet: [UInt8])] = []
    state.withLock { state in
      func index(_ number: UInt32) -> Int? {
        state.streams.firstIndex {
          !$0.isOver && ($0.opener == end ? $0.number == number : $0.taker == number)
        }
      }
      switch asked.type {
      case 13:
        state.last += 1
        state.streams.append(Carried(opener: end, number: asked.number, received: 1_000 + state.last))
        let other = 1 - end, name = String(decoding: fields[25...], as: UTF8.self)
        told.append(
          (other, streamPacket(ends[other].number, 1_000 + state.last, end == 0 ? Self.one : Self.two, name)))
      case 14:
        guard let index = state.streams.firstIndex(where: { !$0.isOver && $0.received == number(0) }) else { return }
        let stream = state.streams[index]
        if fields[4] == 1 {
          state.streams[index].taker = asked.number
          told.append((stream.opener, streamRoomPacket(stream.number, limit(5))))
        } else {
          state.streams[index].isOver = true
          let isPostponed = fields.count > 13 && fields[13] == 1
          told.append((stream.opener, streamEndedPacket(stream.number, 0, isPostponed ? 3 : 2)))
        }
      case 15:
        guard let index = index(number(0)), let taker = state.streams[index].taker else { return }
        state.written += end == 0 ? fields.count - 8 : 0
        told.append((1 - end, streamBytesPacket(taker, Array(fields[8...]))))
      case 16:
        guard let index = index(number(0)) else { return }
        told.append((1 - end, streamRoomPacket(state.streams[index].number, limit(4))))
      case 17:
        guard let index = index(number(0)) else { return }
        state.streams[index].isOver = true
        if let taker = state.streams[index].taker { told.append((1 - end, streamEndedPacket(taker, 0, 0))) }
        told.append((end, streamEndedPacket(number(0), 0, 0)))
      default:
        guard let index = index(number(0)) else { return }
        let stream = state.streams[index], reason: UInt8 = fields.count > 4 && fields[4] == 1 ? 3 : 1
        state.streams[index].isOver = true
        if stream.opener != end {
          told.append((stream.opener, streamEndedPacket(stream.number, 0, reason)))
        } else if let taker = stream.taker {
          told.append((1 - end, streamEndedPacket(taker, 0, reason)))
        } else {
          told.append((1 - end, streamEndedPacket(ends[1 - end].number, stream.received, reason)))
        }
      }
      if state.written >= state.breaksAfter {
        state.breaksAfter = .max
        told += lose(&state)
      }
    }
    for (end, packet) in told { ends[end].daemon.tell(packet) }
  }

  /// Ends all streams as the loss of the path does. Returns the packets that report the loss.
  private func lose(_ state: inout State) -> [(end: Int, packet: [UInt8])] {
    var told: [(end: Int, packet: [UInt8])] = []
    for index in state.streams.indices where !state.streams[index].isOver {
      let stream = state.streams[index]
      state.streams[index].isOver = true
      told.append((stream.opener, streamEndedPacket(stream.number, 0, 5)))
      if let taker = stream.taker { told.append((1 - stream.opener, streamEndedPacket(taker, 0, 5))) }
    }
    return told
  }

  func lose() {
    for (end, packet) in state.withLock({ lose(&$0) }) { ends[end].daemon.tell(packet) }
  }

  /// The next offer that the session of the receiving application reports.
  func offered() async throws -> Offer {
    for try await event in receiver.events { if case .offer(let offer) = event { return offer } }
    throw CausewayError(.invalid, "no offer")
  }
}

/// A temporary directory that is removed with its test.
final class Scratch: Sendable {
  let path: String

  init() throws {
    var template = Array("/tmp/causeway-XXXXXX".utf8CString)
    path = try #require(mkdtemp(&template).map { String(cString: $0) })
  }

  deinit {
    let slash = path.lastIndex(of: "/")!
    if let folder = try? Files.folder(path: String(path[..<slash])) {
      try? Files.removeAll(Array(path[path.index(after: slash)...].utf8), in: folder)
    }
  }

  func write(_ name: String, _ content: [UInt8]) throws {
    let parts = name.split(separator: "/")
    var folder = try Files.folder(path: path)
    for part in parts.dropLast() {
      try? Files.makeFolder(Array(part.utf8), in: folder)
      folder = try Files.folder(Array(part.utf8), in: folder)
    }
    let file = try Files.write(Array(parts[parts.count - 1].utf8), in: folder)
    try Files.truncate(file, to: 0)
    try Files.write(file, offset: 0, content)
  }

  func content(_ name: String) -> [UInt8]? {
    guard let file = try? Files.open(path: path + "/" + name), let size = try? Files.information(file).size else {
      return nil
    }
    return try? Files.read(file, offset: 0, count: Int(size))
  }

  /// The names of the directory's entries, sorted.
  var names: [String] {
    guard let folder = try? Files.folder(path: path), let names = try? Files.names(in: folder, max: 1_000) else {
      return []
    }
    return names.map { String(decoding: $0, as: UTF8.self) }.sorted()
  }
}
