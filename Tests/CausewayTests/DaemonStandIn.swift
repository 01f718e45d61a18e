import Glibc
import Synchronization
import Testing

@testable import Causeway

/// The daemon's end of a connection. The stand-in records each request, and answers it with `done` unless `answers`
/// states another answer.
final class DaemonStandIn: Sendable {
  struct Asked: Sendable {
    let type: UInt8
    let number: UInt32
    let fields: [UInt8]
  }

  private struct State {
    var asked: [Asked] = []
    var seen = 0
    /// The code and text of the answer to a request, by the type of the request. A nil value means that the request
    /// gets no answer.
    var answers: [UInt8: (UInt8, String)?] = [:]
    var endpoint = word(address.endpoint)
    /// Called with each request after the answer.
    var watcher: (@Sendable (Asked) -> Void)?
  }
  private let state = Mutex(State())
  private let socket: Socket
  let client: Int32

  init() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    (socket, client) = (Socket(ends[0]), ends[1])
    Platform.prepare(client)
    let isRunning = Platform.startThread { [weak self, socket] in socket.read { asked in self?.hear(asked) } }
    try #require(isRunning)
  }

  deinit { close() }

  /// Closes the connection, as a daemon does that ends.
  func close() { socket.shut() }

  /// Connects a node to this daemon.
  func connect() async throws -> Node { try await Node.connect(over: client, as: "chat") }

  func answer(_ type: UInt8, _ code: UInt8, _ text: String = "") { state.withLock { $0.answers[type] = (code, text) } }
  func answerNothing(_ type: UInt8) { state.withLock { $0.answers[type] = .some(nil) } }

  func watch(_ watcher: @escaping @Sendable (Asked) -> Void) { state.withLock { $0.watcher = watcher } }

  /// Omits the endpoint in later answers, as the first daemon version does.
  func answerWithoutEndpoint() { state.withLock { $0.endpoint = [] } }

  /// Stops reading until `resume` is called.
  func pause() { socket.isPaused.store(true, ordering: .releasing) }
  func resume() { socket.isPaused.store(false, ordering: .releasing) }

  func tell(_ packets: [UInt8]...) {
    socket.write(Array(packets.joined()))
  }

  /// The next request of a type. Earlier requests of other types are skipped.
  func asked(_ type: UInt8, _ location: SourceLocation = #_sourceLocation) async throws -> Asked {
    try await askedNext([type], location)
  }

  /// The next request of one of these types. Earlier requests of other types are skipped.
  func askedNext(_ types: [UInt8], _ location: SourceLocation = #_sourceLocation) async throws -> Asked {
    for _ in 0..<500 {
      let found: Asked? = state.withLock { state in
        guard let index = state.asked[state.seen...].firstIndex(where: { types.contains($0.type) }) else { return nil }
        state.seen = index + 1
        return state.asked[index]
      }
      if let found { return found }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw Missing(type: types[0], location: location)
  }

  struct Missing: Error {
    let type: UInt8
    let location: SourceLocation
  }

  /// The number of requests of a type so far.
  func count(_ type: UInt8) -> Int { state.withLock { $0.asked.count { $0.type == type } } }

  private func hear(_ asked: Asked) {
    answer(asked)
    state.withLock { $0.watcher }?(asked)
  }

  private func answer(_ asked: Asked) {
    let answer = state.withLock { state in
      state.asked.append(asked)
      return state.answers[asked.type] ?? (0, "")
    }
    if asked.type == 1 && answer?.0 == 0 {
      var welcome = vectors["event-welcome"]!
      welcome.replaceSubrange(5..<9, with: word(asked.number))
      return tell(welcome)
    }
    guard let answer, ![11, 15, 16].contains(asked.type) else { return }
    let endpoint = [2, 4].contains(asked.type) && answer.0 == 0 ? state.withLock { $0.endpoint } : []
    tell(
      packet(128, asked.number) {
        $0.put([answer.0])
        $0.put(answer.1)
        $0.put(endpoint)
      })
  }
}

/// The daemon's end of the socket. Only the thread that reads the socket closes the descriptor. Nothing uses the
/// descriptor's number afterwards, because another test may have got the same number by then.
private final class Socket: Sendable {
  private let descriptor: Int32
  private let isOpen = Mutex(true)
  let isPaused = Atomic(false)

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  func shut() {
    isPaused.store(false, ordering: .releasing)
    isOpen.withLock { if $0 { shutdown(descriptor, Int32(SHUT_RDWR)) } }
  }

  func write(_ bytes: [UInt8]) {
    isOpen.withLock { isOpen in
      var start = 0
      while isOpen && start < bytes.count {
        let count = bytes[start...].withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard count > 0 else { return }
        start += count
      }
    }
  }

  func read(_ hear: (DaemonStandIn.Asked) -> Void) {
    var splitter = PacketSplitter(), buffer = [UInt8](repeating: 0, count: 65_536)
    defer {
      isOpen.withLock { isOpen in
        isOpen = false
        close(descriptor)
      }
    }
    while case let count = Glibc.read(descriptor, &buffer, buffer.count), count > 0 {
      while isPaused.load(ordering: .acquiring) && isOpen.withLock({ $0 }) { usleep(1_000) }
      splitter.append(buffer[..<count])
      while let packet = try? splitter.next() {
        var reader = PacketReader(packet)
        guard let type = try? reader.byte(), let number = try? reader.word() else { return }
        hear(DaemonStandIn.Asked(type: type, number: number, fields: Array(packet.dropFirst(5))))
      }
    }
  }
}

/// The error that a call throws.
func thrown<Value>(_ body: () async throws(CausewayError) -> Value) async -> CausewayError? {
  do { _ = try await body() } catch { return error }
  return nil
}
