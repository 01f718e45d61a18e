import CSystem
import Capture
import Frame
import Primitives
import Testing

let aliceID = NodeID(high: 0xA11C_E000_0000_0001, low: 1)
let bobID = NodeID(high: 0xB0B0_0000_0000_0002, low: 2)

let toBob = FramePassage(
  slot: 3, neighbour: bobID, bearer: .bluetoothLE, isSent: true, isOutsideTLS: true)
let headerBytes = [UInt8](0x81...0xB0)

/// A queue, and the client that receives its packets.
final class CaptureClient {
  static let type = UInt8(ascii: "K")
  static let packetBytes = 65_536

  let queue: CaptureQueue
  let socket: CInt
  private let ownSocket: CInt

  init(_ wish: CaptureWish = CaptureWish()) throws {
    queue = CaptureQueue(wish, type: Self.type, packetBytes: Self.packetBytes)
    var ends: [CInt] = [-1, -1]
    try #require(socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue), 0, &ends) == 0)
    socket = ends[0]
    ownSocket = ends[1]
  }

  deinit {
    close(socket)
    close(ownSocket)
  }

  func pass(
    _ passage: FramePassage = toBob, payload: [UInt8] = [1, 2, 3], at time: Instant = Instant(nanoseconds: 0)
  ) {
    headerBytes.withUnsafeBytes { header in payload.withUnsafeBytes { queue.add(passage, header, $0, at: time) } }
  }

  /// Sends the waiting frames, and returns the packet that the client receives.
  func received() -> (dropped: UInt32, records: [UInt8])? {
    guard queue.send(to: socket) == 0 else { return nil }
    var packet = [UInt8](repeating: 0, count: Self.packetBytes + 1)
    let count = recv(ownSocket, &packet, packet.count, CInt(MSG_DONTWAIT))
    guard count >= 5, packet[0] == Self.type else { return nil }
    return (packet[1..<5].reduce(0) { $0 << 8 | UInt32($1) }, Array(packet[5..<count]))
  }
}
