import CSystem
import Diagnostics
import LocalAPI
import Primitives
import Reactor
import Session

/// The connection of one client of the local API. It cuts requests out of the stream, and writes events when there is
/// room.
final class LocalConnection: EventSource {
  /// The size of the kernel's send buffer, which counts as the daemon's memory. It is small, because waiting events are
  /// already kept once in this process.
  private static let socketBytes: CInt = 32_768
  private static let lengthBytes = 4
  /// The maximum number of reads per client in one wake-up. Several reads let the client's waiting messages leave
  /// together.
  private static let readsPerCall = 4

  /// The state of the client's request for a long-packet place.
  private enum Place {
    case none
    case waited
    case given
  }

  /// The client's place in `LocalClients`.
  let place: Int
  /// The client's process when it connected.
  let process: UInt64
  let user: uid_t
  let isOperator: Bool
  /// The client's place for a long packet.
  private var longPlace = Place.none
  /// When the packet that is being read became incomplete; nil if no packet is incomplete.
  private var packetSince: Instant?
  private let descriptor: CInt
  private var server: LocalServer?
  private var registration: Registration!
  private var interest: Interest = .read
  private var inbox: [UInt8] = []
  private var outgoing: [UInt8] = []
  private var written = 0
  /// Work done for this client in this wake-up, charged to `LocalLimits.workPerCall`.
  var work = 0
  /// Whether the client's next request waits for its rate limit (`SignatureTurns`).
  private var isBeyondRate = false
  /// Whether the client's socket is full, because the client does not read.
  private(set) var isBlocked = false

  /// Takes ownership of the descriptor, unless it throws. Errors: those of epoll_ctl.
  init(_ server: LocalServer, _ descriptor: CInt, place: Int, _ user: UnixUser) throws(SystemError) {
    self.server = server
    self.descriptor = descriptor
    process = user.processID
    self.user = user.userID
    isOperator = user.isOperator
    self.place = place
    var size = Self.socketBytes
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size))
    registration = try server.loop.add(descriptor, .read, .diagnostics, self)
  }

  func ready(_ events: UInt32) {
    if events & EPOLLOUT.rawValue != 0 {
      isBlocked = false
      tell()
    }
    if events & EPOLLIN.rawValue != 0 && wants > 0 {
      receive()
    } else if events & (EPOLLHUP.rawValue | EPOLLERR.rawValue | EPOLLRDHUP.rawValue) != 0 {
      // The client's last request is carried out before the connection ends. A request that must wait longer than the
      // next wake-up is dropped, because epoll reports the end of the connection in every wake-up.
      if let server, hasPacket && server.clients.isReading(place) && !isBeyondRate { return }
      server?.ended(self)
    }
    updateInterest()
  }

  func close() {
    guard let server else { return }
    self.server = nil
    server.loop.remove(registration)
    CSystem.close(descriptor)
  }

  // MARK: Requests

  /// The length of the first packet in the inbox, without the length field; nil if that field is incomplete.
  private var packetLength: Int? {
    inbox.count < Self.lengthBytes ? nil : length(at: 0)
  }

  private func length(at offset: Int) -> Int {
    let bytes = inbox
    return Int(bytes.span.bytes.word32(offset))
  }

  /// Whether a complete request waits for the next wake-up, or for the client to read its answers.
  private var hasPacket: Bool { packetLength.map { inbox.count >= Self.lengthBytes + $0 } ?? false }

  /// The number of bytes that may be read now.
  private var wants: Int {
    guard let server, server.clients.isReading(place), !hasPacket else { return 0 }
    guard let length = packetLength, length > LocalLimits.shortPacketBytesMax else {
      return Self.lengthBytes + LocalLimits.shortPacketBytesMax - inbox.count
    }
    return longPlace == .given ? Self.lengthBytes + length - inbox.count : 0
  }

  /// The number of bytes to request in one read.
  private func readBytesMax(_ server: LocalServer) -> Int {
    if longPlace != .given && server.mayHoldMore(self) { return LocalLimits.largeBytesMax - inbox.count }
    return min(wants, LocalLimits.largeBytesMax)
  }

  /// Whether the daemon buffers more for this client than it always grants to each.
  var holdsMore: Bool {
    outgoing.count > LocalLimits.batchBytesMax
      || longPlace != .given && inbox.count > Self.lengthBytes + LocalLimits.shortPacketBytesMax
  }

  private func receive() {
    for _ in 0..<Self.readsPerCall {
      guard let server, wants > 0 else { return }
      let most = readBytesMax(server)
      var count = 0
      // A buffer of its own, so that the inbox takes no more memory than it holds.
      let piece = [UInt8](unsafeUninitializedCapacity: most) { room, filled in
        count = recv(descriptor, room.baseAddress, most, CInt(MSG_DONTWAIT))
        filled = max(count, 0)
      }
      if count < 0 && (csystem_errno() == EAGAIN || csystem_errno() == EINTR) { return }
      if count <= 0 { return server.ended(self) }
      if inbox.isEmpty && count > most / 2 { inbox = piece } else { inbox.append(copying: piece) }
      takePackets()
      if count < most { return }
    }
  }

  /// Carries out complete requests while the client reads its answers.
  private func takePackets() {
    var offset = 0
    while let server, server.clients.isReading(place), inbox.count - offset >= Self.lengthBytes {
      let length = length(at: offset)
      guard (LocalServer.headBytes...LocalLimits.packetBytesMax).contains(length) else {
        return server.refuse(self, "a packet has 5 to \(LocalLimits.packetBytesMax) bytes after its length")
      }
      let start = offset + Self.lengthBytes
      if inbox.count - start < length { break }
      if server.workLeft(for: self) <= 0 {
        server.resumeLater()
        break
      }
      let bytes = inbox
      let packet = bytes.span.bytes.extracting(start..<start + length)
      let turn = server.clients.turn(of: packet, from: place, now: server.loop.now)
      isBeyondRate = if case .at = turn { true } else { false }
      switch turn {
      case .now: break
      case .nextWakeUp: server.resumeLater()
      case .at(let time): server.resumeLater(at: time)
      }
      if turn != .now { break }
      work += server.clients.receive(packet, from: place, now: server.loop.now)
      offset = start + length
    }
    if offset > 0 {
      inbox = inbox.span.bytes.extracting(offset...).copied
      packetSince = nil
    }
    arrangePlace()
    noteProgress()
  }

  /// Carries out requests that were postponed to a later wake-up.
  func resume() {
    takePackets()
    updateInterest()
  }

  /// Reads input that is already there, before a deadline is applied to the client.
  func catchUp() {
    receive()
    updateInterest()
  }

  /// Requests a place when a long packet begins, and returns the place after its end.
  private func arrangePlace() {
    guard let server else { return }
    let isLong = packetLength.map { $0 > LocalLimits.shortPacketBytesMax } ?? false
    if isLong && longPlace == .none {
      longPlace = .waited
      server.askForPlace(self)
    } else if !isLong, longPlace != .none {
      longPlace = .none
      server.giveBackPlace(self)
    }
  }

  /// Grants the client a place for its long packet.
  func mayBeLong() {
    longPlace = .given
    packetSince = server?.loop.now
    updateInterest()
  }

  /// Updates `packetSince` after the inbox has changed.
  private func noteProgress() {
    if inbox.isEmpty || hasPacket { packetSince = nil } else if packetSince == nil { packetSince = server?.loop.now }
  }

  /// When the client has taken too long to complete a packet. `.never` while it waits for a place, or while it does not
  /// read its answers: a client is not closed for not reading.
  var packetDeadline: Instant {
    guard let packetSince, let server, longPlace != .waited, server.clients.isReading(place) else { return .never }
    return packetSince + LocalLimits.packetTime
  }

  // MARK: Events

  /// Writes new events to the client until none remain or its socket is full. Returns whether anything was written.
  @discardableResult
  func tell() -> Bool {
    var hasWritten = false
    while let server, !isBlocked {
      if written == outgoing.count {
        takeEvents(server)
        if outgoing.isEmpty { break }
      }
      let count = outgoing.withUnsafeBytes {
        CSystem.send(
          descriptor, $0.baseAddress! + written, $0.count - written, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      if count < 0 {
        let error = csystem_errno()
        if error == EINTR { continue }
        if error != EAGAIN {
          server.ended(self)
          return hasWritten
        }
        isBlocked = true
      } else {
        written += count
        hasWritten = true
      }
    }
    // The client may have read its answers.
    if hasWritten { takePackets() }
    updateInterest()
    return hasWritten
  }

  /// Fills `outgoing` with the next events, several short ones together.
  private func takeEvents(_ server: LocalServer) {
    outgoing = []
    written = 0
    let most =
      server.mayHoldMore(self)
      ? LocalLimits.largeBytesMax - LocalLimits.streamPacketBytesMax : LocalLimits.batchBytesMax - 1
    while outgoing.count <= most,
      let packet = server.clients.nextPacket(for: place, now: server.loop.now)
    {
      let count = outgoing.count + packet.count
      if count > LocalLimits.batchBytesMax, count > outgoing.capacity {
        // Reserve once: growth by doubling copies the contents repeatedly.
        let first = outgoing
        outgoing = []
        outgoing.reserveCapacity(max(count, most + LocalLimits.streamPacketBytesMax))
        outgoing.append(copying: first)
      }
      outgoing.append(copying: packet)
    }
  }

  /// Sends a last event to a client that is being closed, if it fits.
  func sendLast(_ event: LocalEvent) {
    guard written == outgoing.count else { return }
    _ = event.packet.withUnsafeBytes { CSystem.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
  }

  private func updateInterest() {
    guard let server else { return }
    var wanted: Interest = .hangUp
    if wants > 0 { wanted.insert(.read) }
    if isBlocked { wanted.insert(.write) }
    if wanted == interest { return }
    interest = wanted
    server.loop.modify(registration, wanted)
  }
}
