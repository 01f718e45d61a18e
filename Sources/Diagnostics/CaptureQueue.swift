import CSystem
import Frame
import Primitives

/// Which frames a client wants.
public struct CaptureWish: Equatable, Sendable {
  /// Frames with their payloads; otherwise their headers.
  public var withPayload = false
  /// Only those of the link in this slot.
  public var link: UInt8?
  /// Only those of links to this node.
  public var neighbour: NodeID?

  public init() {}

  func wants(_ passage: FramePassage) -> Bool {
    if let link, passage.slot != Int(link) { return false }
    if let neighbour, passage.neighbour != neighbour { return false }
    return true
  }
}

/// Frames on their way to one client. Its memory never grows: what finds no room is dropped and counted.
final class CaptureQueue {
  private let wish: CaptureWish
  /// One packet of the control socket, as `ControlEvent.frames` has it.
  private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: ControlProtocol.captureBytes, alignment: 8)
  private var used = ControlProtocol.captureHeadBytes
  private var dropped: UInt32 = 0

  init(_ wish: CaptureWish) { self.wish = wish }

  deinit { memory.deallocate() }

  var isEmpty: Bool { used == ControlProtocol.captureHeadBytes }

  /// Adds a frame if it is wanted; `time` is since 1970.
  func add(
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

  /// Sends all that waits in one packet. Returns 0, or the errno; EAGAIN: the client reads too slowly.
  func send(to descriptor: CInt) -> CInt {
    memory[0] = ControlProtocol.captureType
    for index in 0..<4 { memory[1 + index] = UInt8(truncatingIfNeeded: dropped >> UInt32(24 - 8 * index)) }
    if CSystem.send(descriptor, memory.baseAddress, used, CInt(MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 {
      return csystem_errno()
    }
    used = ControlProtocol.captureHeadBytes
    dropped = 0
    return 0
  }
}
