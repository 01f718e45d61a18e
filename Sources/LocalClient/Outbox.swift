import LocalAPI
import Primitives
import Session

/// Lines on their way to the members of a session. A member gets each line that was written since it came, in order and one
/// after the other; one that is out of reach gets them when it returns. As long as nobody is there, lines wait for whoever
/// comes first.
public struct Outbox {
  /// Lines that wait at once, and their bytes: who writes more waits. The user fills them.
  public static let linesMax = 64
  public static let bytesMax = 262_144

  private struct Recipient {
    let address: MemberAddress
    /// The next line that it lacks: the number of lines that it has or that were before it.
    var next: UInt64
    /// The request by which that line is on its way; 0 for none.
    var request: UInt32 = 0
    var isConnected = true
    /// It had no room, or the last send failed: it is tried again when that may have changed.
    var isStalled = false
    /// No longer a member; what is on its way is awaited.
    var isGone = false

    var isReady: Bool { isConnected && !isStalled && request == 0 }
  }

  private var lines: [[UInt8]] = []
  /// Lines that are done, before the first one kept.
  public private(set) var doneCount: UInt64 = 0
  /// The first line that nobody was there for.
  private var unclaimed: UInt64 = 0
  private var recipients: [Recipient] = []
  private var bytes = 0

  public init() {}

  private var end: UInt64 { doneCount + UInt64(lines.count) }

  public var isEmpty: Bool { lines.isEmpty }
  /// Lines that have not reached everybody.
  public var waitingCount: Int { lines.count }
  /// Nobody is there who gets the lines.
  public var hasNobody: Bool { !recipients.contains { !$0.isGone } }

  public func hasRoom(for byteCount: Int) -> Bool {
    lines.count < Self.linesMax && (lines.isEmpty || bytes + byteCount <= Self.bytesMax)
  }

  /// Lines that a member lacks.
  public func lacking(_ address: MemberAddress) -> Int {
    recipients.first { $0.address == address }.map { Int(end - $0.next) } ?? 0
  }

  /// Adds a line, for which there is room.
  public mutating func add(_ line: [UInt8]) {
    lines.append(line)
    bytes += line.count
    if !hasNobody { unclaimed = end }
  }

  // MARK: Members

  /// A member is connected, or is again.
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

  /// A member is out of reach.
  public mutating func away(_ address: MemberAddress) {
    guard let index = recipients.firstIndex(where: { $0.address == address }) else { return }
    recipients[index].isConnected = false
  }

  /// A member has left. Returns how many lines it lacks for good.
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
    // Whoever comes next gets them.
    unclaimed = min(unclaimed, lacking)
    return 0
  }

  // MARK: Sending

  /// The next line to send, to those who lack the same one: as request `number`. Nil when nobody can be sent anything.
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

  /// What became of a line. Returns how many lines a member that has left lacks for good.
  public mutating func sent(_ number: UInt32, to address: MemberAddress, _ delivery: LocalDelivery) -> Int {
    let known = recipients.firstIndex { $0.address == address && $0.request == number }
    guard let index = known else { return 0 }
    recipients[index].request = 0
    if delivery == .delivered { recipients[index].next += 1 } else { recipients[index].isStalled = true }
    if recipients[index].isGone { return forget(index) }
    trim()
    return 0
  }

  /// A request to send was refused as a whole.
  public mutating func refused(_ number: UInt32) {
    for index in recipients.indices where recipients[index].request == number {
      recipients[index].request = 0
      recipients[index].isStalled = true
    }
  }

  /// A member may have room.
  public mutating func room(_ address: MemberAddress) {
    for index in recipients.indices where recipients[index].address == address { recipients[index].isStalled = false }
  }

  /// Whether `retry` has something to do: a second later at the latest.
  public var hasStalled: Bool { recipients.contains { $0.isStalled && $0.isConnected } }

  public mutating func retry() {
    for index in recipients.indices { recipients[index].isStalled = false }
  }

  /// Lines that all have are done.
  private mutating func trim() {
    var first = unclaimed
    for recipient in recipients { first = min(first, recipient.next) }
    while doneCount < first, !lines.isEmpty {
      bytes -= lines.removeFirst().count
      doneCount += 1
    }
  }
}
