import Bearer
import CSystem
import Primitives
import Reactor

@testable import BearerBluetooth

/// The kernel's end of a management socket. This end receives commands, answers them and sends events. The controllers
/// exist only as the packets that a test sends.
final class FakeKernel {
  struct Command: Equatable {
    var opcode: UInt16
    var index: UInt16
    var parameters: [UInt8]
  }

  let loop: EventLoop
  /// The descriptor of the socket's user end. The code under test takes ownership of this descriptor.
  let theirs: CInt
  private var ours: CInt

  init() throws {
    loop = try EventLoop()
    var ends: [CInt] = [-1, -1]
    let kind = CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw SystemError.last }
    (theirs, ours) = (ends[0], ends[1])
  }

  deinit { hangUp() }

  func hangUp() {
    if ours >= 0 { close(ours) }
    ours = -1
  }

  /// The next command. Nil without a command. The loop first serves the descriptors that are ready.
  func take() -> Command? {
    loop.turn(waitMilliseconds: 0)
    var buffer = [UInt8](repeating: 0, count: 1024)
    let count = recv(ours, &buffer, buffer.count, CInt(MSG_DONTWAIT))
    guard count > 0 else { return nil }
    let packet = Array(buffer[..<count])
    var reader = ByteReader(packet.span.bytes, orThrow: TooShort())
    guard let opcode = try? reader.u16le(), let index = try? reader.u16le(), let length = try? reader.u16le(),
      Int(length) == reader.remaining, let parameters = try? reader.array(Int(length))
    else { return nil }
    return Command(opcode: opcode, index: index, parameters: parameters)
  }

  func reply(_ opcode: UInt16, _ index: UInt16, _ status: UInt8 = 0, _ parameters: [UInt8] = []) {
    var body: [UInt8] = []
    body.append(littleEndian: opcode)
    tell(0x0001, index, body + [status] + parameters)
  }

  func tell(_ code: UInt16, _ index: UInt16, _ parameters: [UInt8] = []) {
    var packet: [UInt8] = []
    packet.append(littleEndian: code)
    packet.append(littleEndian: index)
    packet.append(littleEndian: UInt16(parameters.count))
    put(packet + parameters)
  }

  func put(_ packet: [UInt8]) {
    _ = send(ours, packet, packet.count, CInt(MSG_NOSIGNAL))
    loop.turn(waitMilliseconds: 0)
  }

  static let address: UInt64 = 0xB827_EB00_0001

  /// Answers all commands as a working controller would. `refusing` maps the opcode of a command to the status with
  /// which it fails. Returns the opcodes of all commands.
  @discardableResult
  func serve(
    indexes: [UInt16] = [0], supported: UInt32 = 0x0000_0201, current: UInt32 = 0x0000_0010, isExtended: Bool = false,
    refusing: [UInt16: UInt8] = [:]
  ) -> [UInt16] {
    var asked: [UInt16] = []
    while let command = take() {
      asked.append(command.opcode)
      if let status = refusing[command.opcode] {
        reply(command.opcode, command.index, status)
        continue
      }
      answer(command, indexes: indexes, supported: supported, current: current, isExtended: isExtended)
    }
    return asked
  }

  /// Answers one command as a working controller would.
  func answer(
    _ command: Command, indexes: [UInt16] = [0], supported: UInt32 = 0x0000_0201, current: UInt32 = 0x0000_0010,
    isExtended: Bool = false
  ) {
    var answer: [UInt8] = []
    switch command.opcode {
    case 0x0003:
      answer.append(littleEndian: UInt16(indexes.count))
      for index in indexes { answer.append(littleEndian: index) }
    case 0x0004:
      let address = Self.address + UInt64(command.index)
      answer = BluetoothEndpoint(address: address, isRandom: false).wireBytes + [9, 0, 0]
      answer.append(littleEndian: supported)
      answer.append(littleEndian: current)
    case 0x003D: answer.append(littleEndian: UInt32(isExtended ? 0x0001_FFFF : 0x0000_007F))
    default: break
    }
    reply(command.opcode, command.index, 0, answer)
  }
}

/// Records the reports of a bearer.
final class Witness: BearerDelegate {
  var opened: [StreamHandoff] = []
  var failed: [(token: UInt32, reason: String)] = []
  var found: [Candidate] = []
  var lost: [Candidate] = []
  var faults: [String] = []
  var news: [String] = []

  func bearerOpened(_ stream: StreamHandoff) { opened.append(stream) }
  func bearerDialFailed(token: UInt32, reason: String) { failed.append((token, reason)) }
  func bearerFound(_ candidate: Candidate) { found.append(candidate) }
  func bearerLost(_ candidate: Candidate) { lost.append(candidate) }
  func bearerReport(_ source: StaticString, _ text: String, isFault: Bool) {
    if isFault { faults.append(text) } else { news.append(text) }
  }
}
