import CSystem
import Diagnostics
import LocalAPI
import Primitives
import Reactor
import Session

/// The connection of one client of the local API: cuts requests out of the stream, and writes events when there is room.
final class LocalConnection: EventSource {
  /// The kernel's buffer for events, which counts as the daemon's memory: small, because what waits is kept here once.
  private static let socketBytes: CInt = 32_768
  private static let lengthBytes = 4
  /// How often a client is read in one wake-up: so its messages that wait leave together.
  private static let readsPerCall = 4

  /// A place for a long packet.
  private enum Place {
    case none
    case waited
    case given
  }

  /// Its place in `LocalClients`.
  let place: Int
  /// As it connected.
  let process: UInt64
  let user: uid_t
  let isOperator: Bool
  /// Its place for a long packet.
  private var longPlace = Place.none
  /// Since when a packet has been incomplete that may be read; nil when none is.
  private var packetSince: Instant?
  private let descriptor: CInt
  private var server: LocalServer?
  private var registration: Registration!
  private var interest: Interest = .read
  private var inbox: [UInt8] = []
  private var outgoing: [UInt8] = []
  private var written = 0
  /// Carried out in this wake-up, of `LocalLimits.workPerCall`.
  var work = 0
  /// Its next request waits for a rate (`SignatureTurns`).
  private var isBeyondRate = false
  /// The client does not read.
  private(set) var isBlocked = false

  /// Takes over the descriptor, unless it throws. Errors: epoll_ctl's.
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
      // The client's last request is carried out first, unless that would take longer than until the next wake-up: the end
      // of the connection is reported in each.
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

  /// The length of the packet at the beginning of the inbox, without its own bytes; nil when it is not all there.
  private var packetLength: Int? {
    inbox.count < Self.lengthBytes ? nil : length(at: 0)
  }

  private func length(at offset: Int) -> Int {
    let bytes = inbox
    return Int(bytes.span.bytes.word32(offset))
  }

  /// A request waits for the next wake-up, or for the client to read its answers.
  private var hasPacket: Bool { packetLength.map { inbox.count >= Self.lengthBytes + $0 } ?? false }

  /// How many bytes may be read now.
  private var wants: Int {
    guard let server, server.clients.isReading(place), !hasPacket else { return 0 }
    guard let length = packetLength, length > LocalLimits.shortPacketBytesMax else {
      return Self.lengthBytes + LocalLimits.shortPacketBytesMax - inbox.count
    }
    return longPlace == .given ? Self.lengthBytes + length - inbox.count : 0
  }

  /// How many bytes are read at once.
  private func readBytesMax(_ server: LocalServer) -> Int {
    if longPlace != .given && server.mayHoldMore(self) { return LocalLimits.largeBytesMax - inbox.count }
    return min(wants, LocalLimits.largeBytesMax)
  }

  /// More of a client is in hand than each may have at any time.
  var holdsMore: Bool {
    outgoing.count > LocalLimits.batchBytesMax
      || longPlace != .given && inbox.count > Self.lengthBytes + LocalLimits.shortPacketBytesMax
  }

  private func receive() {
    for _ in 0..<Self.readsPerCall {
      guard let server, wants > 0 else { return }
      let most = readBytesMax(server)
      var count = 0
      // Of its own, so that the inbox takes no more memory than what it holds.
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

  /// Carries out the requests that are complete, as long as the client reads its answers.
  private func takePackets() {
    var offset = 0
    while let server, server.clients.isReading(place), inbox.count - offset >= Self.lengthBytes {
      let length = length(at: offset)
      guard (LocalServer.headBytes...LocalLimits.packetBytesMax).contains(length) else {
        return server.refuse(self, "a packet has 5 to \(LocalLimits.packetBytesMax) bytes behind its length")
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

  /// Carries out what waited for another wake-up.
  func resume() {
    takePackets()
    updateInterest()
  }

  /// Reads what may be read, before the client is judged by the time.
  func catchUp() {
    receive()
    updateInterest()
  }

  /// Asks for a place when a long packet begins, and gives it back after its end.
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

  /// There is a place for its long packet.
  func mayBeLong() {
    longPlace = .given
    packetSince = server?.loop.now
    updateInterest()
  }

  /// A packet has begun to be incomplete, or is no longer.
  private func noteProgress() {
    if inbox.isEmpty || hasPacket { packetSince = nil } else if packetSince == nil { packetSince = server?.loop.now }
  }

  /// When the client has taken too long for the rest of a packet. Never while it waits for a place, or while it does not
  /// read its answers: a client is not closed because it does not read.
  var packetDeadline: Instant {
    guard let packetSince, let server, longPlace != .waited, server.clients.isReading(place) else { return .never }
    return packetSince + LocalLimits.packetTime
  }

  // MARK: Events

  /// Writes what is new for the client until there is nothing, or its socket is full. True when anything was written.
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
    // It may have read its answers.
    if hasWritten { takePackets() }
    updateInterest()
    return hasWritten
  }

  /// Puts the next events into `outgoing`, short ones together.
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
        // At once, not by doubling, which copies what is there again and again.
        let first = outgoing
        outgoing = []
        outgoing.reserveCapacity(max(count, most + LocalLimits.streamPacketBytesMax))
        outgoing.append(copying: first)
      }
      outgoing.append(copying: packet)
    }
  }

  /// A last event for a client that is closed, if it fits.
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
