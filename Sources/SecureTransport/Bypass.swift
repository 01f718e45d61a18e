import CMbedTLS
import Link

/// The bypass of one stream. A bypass carries sealed frames, which are encrypted end to end, outside TLS. The bypass
/// has the keys, the link sequence numbers of both directions, and the frame that is being received.
final class Bypass {
  /// The TLS exporter label (RFC 5705 and RFC 8446, section 7.5), without context.
  static let exporterLabel: StaticString = "EXPORTER-causeway-bypass-v2"

  enum Reading {
    /// The frame is not complete yet.
    case incomplete
    /// An authentic frame. The pointers are valid until `frameTaken` is called.
    case frame(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer)
    case replayed
    case forged
  }

  private let sending: HeaderAuthenticator
  private let receiving: HeaderAuthenticator
  private var lastSent: UInt64 = 0
  private var lastReceived: UInt64 = 0
  /// The buffer of a frame that arrives in several pieces. This buffer is allocated only while a frame arrives in
  /// pieces, because most links are idle.
  private var partial: UnsafeMutableRawBufferPointer?
  static let partialBytesMax = StreamDemultiplexer.sealedOverheadBytes + StreamDemultiplexer.sealedPayloadBytesMax
  private var partialCount = 0

  /// `keys` has 32 bytes: 16 for the direction from client to server, then 16 for the opposite direction.
  init(keys: UnsafeRawBufferPointer, role: SecureStream.Role) {
    precondition(keys.count == 2 * HeaderAuthenticator.keyBytes)
    let ofClient = UnsafeRawBufferPointer(rebasing: keys[..<HeaderAuthenticator.keyBytes])
    let ofServer = UnsafeRawBufferPointer(rebasing: keys[HeaderAuthenticator.keyBytes...])
    sending = HeaderAuthenticator(key: role == .client ? ofClient : ofServer)
    receiving = HeaderAuthenticator(key: role == .client ? ofServer : ofClient)
  }

  /// Derives the keys from the established TLS session with the TLS exporter.
  static func exported(
    from tls: UnsafeMutablePointer<mbedtls_ssl_context>, role: SecureStream.Role
  ) throws(SecureStreamError) -> Bypass {
    var keys = InlineArray<32, UInt8>(repeating: 0)
    defer { withUnsafeMutableBytes(of: &keys) { mbedtls_platform_zeroize($0.baseAddress, $0.count) } }
    let code = withUnsafeMutableBytes(of: &keys) { export(tls, label: exporterLabel, into: $0) }
    if code != 0 { throw .library(code: code) }
    return withUnsafeBytes(of: keys) { Bypass(keys: $0, role: role) }
  }

  deinit { partial?.deallocate() }

  /// Exports keying material of the established TLS session into all bytes of `key`. Returns mbedTLS's error number, or
  /// 0.
  static func export(
    _ tls: UnsafeMutablePointer<mbedtls_ssl_context>, label: StaticString, into key: UnsafeMutableRawBufferPointer
  ) -> Int32 {
    mbedtls_ssl_export_keying_material(
      tls, key.bindMemory(to: UInt8.self).baseAddress, key.count,
      UnsafeRawPointer(label.utf8Start).assumingMemoryBound(to: CChar.self), label.utf8CodeUnitCount, nil, 0, 0)
  }

  /// Writes header ‖ sequence ‖ tag ‖ payload to `room`, which must have space for all four parts.
  func write(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer, to room: UnsafeMutableRawPointer) {
    (room + Offset.payload).copyMemory(from: payload.baseAddress!, byteCount: payload.count)
    writeHead(header.baseAddress!, to: room)
  }

  /// Writes header ‖ sequence ‖ tag to `room`. The payload must be in memory directly behind the tag. The memory of
  /// `header` may overlap `room`.
  func writeHead(_ header: UnsafeRawPointer, to room: UnsafeMutableRawPointer) {
    // No link sends 2⁶⁴ frames, so sequence numbers do not repeat.
    lastSent &+= 1
    room.copyMemory(from: header, byteCount: Offset.sequence)
    (room + Offset.sequence).storeBytes(of: lastSent.bigEndian, as: UInt64.self)
    sending.seal(room, tag: room + Offset.tag)
  }

  /// The number of bytes between header and payload on the wire.
  static let gap = Offset.payload - Offset.sequence

  /// Adds the next bytes of a frame, and verifies the frame once it is complete.
  func read(_ bytes: UnsafeRawBufferPointer, begins: Bool, ends: Bool) -> Reading {
    if begins {
      partialCount = 0
      if ends { return check(bytes) }
    }
    let memory = partial ?? .allocate(byteCount: Self.partialBytesMax, alignment: 16)
    partial = memory
    // The demultiplexer has checked the frame's length against its limits, which are this buffer's size.
    UnsafeMutableRawBufferPointer(rebasing: memory[partialCount...]).copyMemory(from: bytes)
    partialCount += bytes.count
    return ends ? check(UnsafeRawBufferPointer(rebasing: memory[..<partialCount])) : .incomplete
  }

  /// Releases the memory of the frame that `read` returned.
  func frameTaken() {
    partial?.deallocate()
    partial = nil
  }

  private func check(_ frame: UnsafeRawBufferPointer) -> Reading {
    let start = frame.baseAddress!
    guard receiving.check(start, tag: start + Offset.tag) else { return .forged }
    let sequence = UInt64(bigEndian: frame.loadUnaligned(fromByteOffset: Offset.sequence, as: UInt64.self))
    guard sequence > lastReceived else { return .replayed }
    lastReceived = sequence
    return .frame(
      header: UnsafeRawBufferPointer(rebasing: frame[..<Offset.sequence]),
      payload: UnsafeRawBufferPointer(rebasing: frame[Offset.payload...]))
  }

  private enum Offset {
    static let sequence = StreamDemultiplexer.sealedHeaderBytes
    static let tag = sequence + StreamDemultiplexer.sealedSequenceBytes
    static let payload = StreamDemultiplexer.sealedOverheadBytes
  }
}
