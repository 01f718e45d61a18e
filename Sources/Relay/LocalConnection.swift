import CSystem
import ControlSocket
import LocalAPI
import Primitives
import Reactor
import Session

/// The connection of one client of the local API. The connection splits the received bytes into requests, and writes
/// events when the socket accepts them.
final class LocalConnection: EventSource {
  /// The size of the socket's send buffer in the kernel, in bytes. The buffer is small for two reasons. The kernel
  /// charges the buffer to the memory of the daemon, and this process already stores the events that wait.
  private static let socketBytes: CInt = 32_768
  private static let lengthBytes = 4
  /// The maximum number of reads per client in one pass of the event loop. With several reads, messages that the client
  /// wrote separately share frames.
  private static let readsPerCall = 4

  /// Whether the client has one of the buffers for long packets (`LocalLimits.longPacketsMax`), or waits for one.
  private enum LongSlot {
    case none
    case waited
    case given
  }

  /// The client's index in `ClientRecords`.
  let clientIndex: Int
  /// The id of the process that opened the connection.
  let process: UInt64
  let user: uid_t
  let isOperator: Bool
  /// Whether the client has a buffer for a long packet, or waits for one.
  private var longSlot = LongSlot.none
  /// Since when the first packet in the inbox is incomplete; nil if there is no incomplete packet.
  private var packetSince: Instant?
  private let descriptor: CInt
  private var server: ClientServer?
  private var registration: Registration!
  private var interest: Interest = .read
  private var inbox: [UInt8] = []
  private var outgoing: [UInt8] = []
  private var written = 0
  /// Work done for this client in this pass of the event loop, in the unit of `LocalLimits.workPerCall`.
  var work = 0
  /// Whether the client's next request waits for its rate limit (`SignatureTurns`).
  private var isBeyondRate = false
  /// Whether the client's socket is full, because the client does not read.
  private(set) var isBlocked = false

  /// Becomes the owner of the descriptor, unless an error is thrown. Errors: those of epoll_ctl.
  init(_ server: ClientServer, _ descriptor: CInt, clientIndex: Int, _ user: UnixUser) throws(SystemError) {
    self.server = server
    self.descriptor = descriptor
    process = user.processID
    self.user = user.userID
    isOperator = user.isOperator
    self.clientIndex = clientIndex
    var size = Self.socketBytes
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size))
    registration = try server.loop.add(descriptor, .read, .diagnostics, self)
  }

  func ready(_ events: UInt32) {
    if events & EPOLLOUT.rawValue != 0 {
      isBlocked = false
      sendEvents()
    }
    if events & EPOLLIN.rawValue != 0 && wants > 0 {
      receive()
    } else if events & (EPOLLHUP.rawValue | EPOLLERR.rawValue | EPOLLRDHUP.rawValue) != 0 {
      // The client's last request is carried out before the connection is closed. A request that waits for its rate
      // limit is dropped. Until the connection is closed, epoll reports its end in every pass of the event loop, and
      // would keep the loop busy.
      if let server, hasPacket && server.clients.isReading(clientIndex) && !isBeyondRate { return }
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

  /// The number of bytes of the first packet in the inbox, without its length field; nil if the length field is
  /// incomplete.
  private var packetLength: Int? {
    inbox.count < Self.lengthBytes ? nil : length(at: 0)
  }

  private func length(at offset: Int) -> Int {
    let bytes = inbox
    return Int(bytes.span.bytes.word32(offset))
  }

  /// Whether the inbox contains a complete request. The request waits for a later pass of the event loop, or until the
  /// client reads its answers.
  private var hasPacket: Bool { packetLength.map { inbox.count >= Self.lengthBytes + $0 } ?? false }

  /// The number of bytes that may be read from the client now.
  private var wants: Int {
    guard let server, server.clients.isReading(clientIndex), !hasPacket else { return 0 }
    guard let length = packetLength, length > LocalLimits.shortPacketBytesMax else {
      return Self.lengthBytes + LocalLimits.shortPacketBytesMax - inbox.count
    }
    return longSlot == .given ? Self.lengthBytes + length - inbox.count : 0
  }

  /// The number of bytes to request in one read.
  private func readBytesMax(_ server: ClientServer) -> Int {
    if longSlot != .given && server.mayHoldMore(self) { return LocalLimits.largeBytesMax - inbox.count }
    return min(wants, LocalLimits.largeBytesMax)
  }

  /// Whether the daemon buffers more bytes for this client than the amount that every client may use at any time.
  var holdsMore: Bool {
    outgoing.count > LocalLimits.batchBytesMax
      || longSlot != .given && inbox.count > Self.lengthBytes + LocalLimits.shortPacketBytesMax
  }

  private func receive() {
    for _ in 0..<Self.readsPerCall {
      guard let server, wants > 0 else { return }
      let most = readBytesMax(server)
      var count = 0
      // The bytes are read into a new buffer. Reading into the inbox would give the inbox the capacity of `most`, even
      // for a few bytes.
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

  /// Carries out the complete requests in the inbox. Stops while the client leaves too many answers unread.
  private func takePackets() {
    var offset = 0
    while let server, server.clients.isReading(clientIndex), inbox.count - offset >= Self.lengthBytes {
      let length = length(at: offset)
      guard (ClientServer.headBytes...LocalLimits.packetBytesMax).contains(length) else {
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
      let turn = server.clients.turn(of: packet, from: clientIndex, now: server.loop.now)
      isBeyondRate = if case .at = turn { true } else { false }
      switch turn {
      case .now: break
      case .nextWakeUp: server.resumeLater()
      case .at(let time): server.resumeLater(at: time)
      }
      if turn != .now { break }
      work += server.clients.receive(packet, from: clientIndex, now: server.loop.now)
      offset = start + length
    }
    if offset > 0 {
      inbox = inbox.span.bytes.extracting(offset...).copied
      packetSince = nil
    }
    arrangeSlot()
    noteProgress()
  }

  /// Carries out requests that were postponed to a later pass of the event loop.
  func resume() {
    takePackets()
    updateInterest()
  }

  /// Reads input that has already arrived, before the server closes the client for a missed deadline.
  func catchUp() {
    receive()
    updateInterest()
  }

  /// Requests a buffer for a long packet when a long packet begins, and returns the buffer when the packet is complete.
  private func arrangeSlot() {
    guard let server else { return }
    let isLong = packetLength.map { $0 > LocalLimits.shortPacketBytesMax } ?? false
    if isLong && longSlot == .none {
      longSlot = .waited
      server.askForSlot(self)
    } else if !isLong, longSlot != .none {
      longSlot = .none
      server.giveBackSlot(self)
    }
  }

  /// Grants the client a buffer for its long packet.
  func mayBeLong() {
    longSlot = .given
    packetSince = server?.loop.now
    updateInterest()
  }

  /// Updates `packetSince` after the inbox has changed.
  private func noteProgress() {
    if inbox.isEmpty || hasPacket { packetSince = nil } else if packetSince == nil { packetSince = server?.loop.now }
  }

  /// The time by which the client must complete its packet. `.never` while the client waits for a long-packet buffer,
  /// because then the daemon is the cause. Also `.never` while the client leaves its answers unread, because that is no
  /// reason to close a client.
  var packetDeadline: Instant {
    guard let packetSince, let server, longSlot != .waited, server.clients.isReading(clientIndex) else { return .never }
    return packetSince + LocalLimits.packetTime
  }

  // MARK: Events

  /// Writes new events to the client until none remain or its socket is full. Returns whether anything was written.
  @discardableResult
  func sendEvents() -> Bool {
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
    // The client may have read answers, so further requests may be carried out.
    if hasWritten { takePackets() }
    updateInterest()
    return hasWritten
  }

  /// Fills `outgoing` with the client's next events. Several short events are sent in one write.
  private func takeEvents(_ server: ClientServer) {
    outgoing = []
    written = 0
    let most =
      server.mayHoldMore(self)
      ? LocalLimits.largeBytesMax - LocalLimits.streamPacketBytesMax : LocalLimits.batchBytesMax - 1
    while outgoing.count <= most,
      let packet = server.clients.nextPacket(for: clientIndex, now: server.loop.now)
    {
      let count = outgoing.count + packet.count
      if count > LocalLimits.batchBytesMax, count > outgoing.capacity {
        // The capacity is reserved once, because growth by doubling would copy the contents repeatedly.
        let first = outgoing
        outgoing = []
        outgoing.reserveCapacity(max(count, most + LocalLimits.streamPacketBytesMax))
        outgoing.append(copying: first)
      }
      outgoing.append(copying: packet)
    }
  }

  /// Sends a last event to a client that is being closed. The event is lost if an earlier event is partly written or
  /// the socket is full.
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
