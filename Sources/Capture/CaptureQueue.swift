import CSystem
import Frame
import Primitives

/// The frames that a client wants to capture.
public struct CaptureWish: Equatable, Sendable {
  /// Whether captured frames include their payloads. If false, only headers are captured.
  public var withPayload = false
  /// Restricts the capture to the link with this number (slot). Nil: all links.
  public var link: UInt8?
  /// Restricts the capture to links to this neighbour. Nil: all neighbours.
  public var neighbour: NodeID?

  public init() {}

  func wants(_ passage: FramePassage) -> Bool {
    if let link, passage.slot != Int(link) { return false }
    if let neighbour, passage.neighbour != neighbour { return false }
    return true
  }
}

/// The captured frames that wait to be sent to one client, as one packet. A packet has a type byte, the number of
/// frames dropped since the last packet (four bytes, big-endian), and pcap records (`CaptureFormat`). The packet has a
/// maximum size: frames that do not fit are dropped and counted.
public final class CaptureQueue {
  /// The size in bytes of a packet's head, before the pcap records.
  private static let headBytes = 5

  private let wish: CaptureWish
  private let memory: UnsafeMutableRawBufferPointer
  private var used = CaptureQueue.headBytes
  private var dropped: UInt32 = 0

  /// Creates an empty queue. `type`: the first byte of each packet. `packetBytes`: the maximum size of a packet.
  public init(_ wish: CaptureWish, type: UInt8, packetBytes: Int) {
    self.wish = wish
    memory = .allocate(byteCount: packetBytes, alignment: 8)
    memory[0] = type
  }

  deinit { memory.deallocate() }

  public var isEmpty: Bool { used == Self.headBytes }

  /// Adds a frame if the client wants the frame. `time`: the time of the capture, since 1970.
  public func add(
    _ passage: FramePassage, _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, at time: Instant
  ) {
    guard wish.wants(passage) else { return }
    let most = CaptureFormat.recordHeaderBytes + CaptureFormat.passageBytes + header.count + payload.count
    let bytes = wish.withPayload ? most : most - payload.count
    guard bytes <= memory.count - used else {
      if dropped < .max { dropped += 1 }
      return
    }
    used += CaptureFormat.write(
      passage, header, payload, isWhole: wish.withPayload, at: time,
      to: UnsafeMutableRawBufferPointer(rebasing: memory[used...]))
  }

  /// Sends all waiting frames in one packet. Returns 0 or the errno; EAGAIN means that the client reads too slowly.
  public func send(to descriptor: CInt) -> CInt {
    for index in 0..<4 { memory[1 + index] = UInt8(truncatingIfNeeded: dropped >> UInt32(24 - 8 * index)) }
    if CSystem.send(descriptor, memory.baseAddress, used, CInt(MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 {
      return csystem_errno()
    }
    used = Self.headBytes
    dropped = 0
    return 0
  }
}
