import LocalAPI
import Primitives
import Session

/// Lines to be sent to the members of a session. A member receives each line that was written since the member joined,
/// one line at a time and in order. A member that is out of reach receives the waiting lines on its return. While there
/// is no member, lines wait for the first member that joins.
public struct Outbox {
  /// The maximum number of waiting lines, and the maximum number of their bytes. The user's input fills the outbox.
  /// When the outbox is full, the command reads no more input.
  public static let linesMax = 64
  public static let bytesMax = 262_144

  private struct Recipient {
    let address: MemberAddress
    /// The number of the next line to send to the member. All earlier lines were delivered, or were written before the
    /// member joined.
    var next: UInt64
    /// The number of the request that carries the line `next`; 0 while the line is not in flight.
    var request: UInt32 = 0
    var isConnected = true
    /// Whether the last send to the member failed, or the member had no room. `room`, `retry` and a reconnection of the
    /// member set this to false.
    var isStalled = false
    /// Whether the member has left. The result of a line in flight to this member is still awaited.
    var isGone = false

    var isReady: Bool { isConnected && !isStalled && request == 0 }
  }

  private var lines: [[UInt8]] = []
  /// The number of completed lines. Completed lines are no longer stored.
  public private(set) var doneCount: UInt64 = 0
  /// The number of the first line that no member has had the chance to receive. A new member begins with this line.
  private var unclaimed: UInt64 = 0
  private var recipients: [Recipient] = []
  private var bytes = 0

  public init() {}

  private var end: UInt64 { doneCount + UInt64(lines.count) }

  public var isEmpty: Bool { lines.isEmpty }
  /// The number of lines that at least one member has not received.
  public var waitingCount: Int { lines.count }
  /// Whether there is no member to receive the lines.
  public var hasNobody: Bool { !recipients.contains { !$0.isGone } }

  public func hasRoom(for byteCount: Int) -> Bool {
    lines.count < Self.linesMax && (lines.isEmpty || bytes + byteCount <= Self.bytesMax)
  }

  /// The number of lines that a member has not received.
  public func lacking(_ address: MemberAddress) -> Int {
    recipients.first { $0.address == address }.map { Int(end - $0.next) } ?? 0
  }

  /// Adds a line. The caller has checked `hasRoom`.
  public mutating func add(_ line: [UInt8]) {
    lines.append(line)
    bytes += line.count
    if !hasNobody { unclaimed = end }
  }

  // MARK: Members

  /// Adds a member that has connected or reconnected.
  public mutating func connected(_ address: MemberAddress) {
    guard let index = recipients.firstIndex(where: { $0.address == address }) else {
      recipients.append(Recipient(address: address, next: unclaimed))
      unclaimed = end
      return
    }
    recipients[index].isConnected = true
    recipients[index].isStalled = false
    recipients[index].isGone = false
  }

  /// Records that a member is out of reach.
  public mutating func away(_ address: MemberAddress) {
    guard let index = recipients.firstIndex(where: { $0.address == address }) else { return }
    recipients[index].isConnected = false
  }

  /// Records that a member has left. Returns the number of lines that the member will never receive.
  public mutating func gone(_ address: MemberAddress) -> Int {
    guard let index = recipients.firstIndex(where: { $0.address == address }) else { return 0 }
    recipients[index].isGone = true
    recipients[index].isConnected = false
    return recipients[index].request == 0 ? forget(index) : 0
  }

  private mutating func forget(_ index: Int) -> Int {
    let lacking = recipients.remove(at: index).next
    defer { trim() }
    if !hasNobody { return Int(end - lacking) }
    // The next member that joins receives the remaining lines.
    unclaimed = min(unclaimed, lacking)
    return 0
  }

  // MARK: Sending

  /// The next line to send as request `number`, and all members for which this line is the next one. Returns nil if
  /// nothing can be sent now.
  public mutating func nextSend(as number: UInt32) -> (line: [UInt8], to: [MemberAddress])? {
    var first = end
    for recipient in recipients where recipient.isReady { first = min(first, recipient.next) }
    guard first < end else { return nil }
    var to: [MemberAddress] = []
    for index in recipients.indices where recipients[index].isReady && recipients[index].next == first {
      recipients[index].request = number
      to.append(recipients[index].address)
    }
    return (lines[Int(first - doneCount)], to)
  }

  /// Records the result of a line. Returns the number of lines that a departed member will never receive.
  public mutating func sent(_ number: UInt32, to address: MemberAddress, _ delivery: LocalDelivery) -> Int {
    let known = recipients.firstIndex { $0.address == address && $0.request == number }
    guard let index = known else { return 0 }
    recipients[index].request = 0
    if delivery == .delivered { recipients[index].next += 1 } else { recipients[index].isStalled = true }
    if recipients[index].isGone { return forget(index) }
    trim()
    return 0
  }

  /// Records that the daemon refused a send request for all of its recipients.
  public mutating func refused(_ number: UInt32) {
    for index in recipients.indices where recipients[index].request == number {
      recipients[index].request = 0
      recipients[index].isStalled = true
    }
  }

  /// Records that a member may have room.
  public mutating func room(_ address: MemberAddress) {
    for index in recipients.indices where recipients[index].address == address { recipients[index].isStalled = false }
  }

  /// Whether `retry` should be called within a second: a connected member had no room, or the last send to a connected
  /// member failed.
  public var hasStalled: Bool { recipients.contains { $0.isStalled && $0.isConnected } }

  /// Retries all members that had no room or whose last send failed.
  public mutating func retry() {
    for index in recipients.indices { recipients[index].isStalled = false }
  }

  /// Removes the lines that all members have received.
  private mutating func trim() {
    var first = unclaimed
    for recipient in recipients { first = min(first, recipient.next) }
    while doneCount < first, !lines.isEmpty {
      bytes -= lines.removeFirst().count
      doneCount += 1
    }
  }
}
