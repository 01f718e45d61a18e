import Frame
import Primitives

/// Separates the two kinds of unit on a link's byte stream by their first byte (the technique of RFC 7983). The first
/// byte is 20–23 for a TLS record (RFC 8446, section 5.1) and 0x81 for a sealed frame. A sealed frame is encrypted end
/// to end, and travels outside the TLS records.
///
/// The demultiplexer works incrementally: `next` accepts input that is split anywhere, and returns the kind and the
/// number of the first bytes. The caller passes the bytes after this piece to the next call. No bytes are stored, so a
/// caller that needs a complete sealed frame must join the pieces.
///
/// A sealed frame on the wire: frame header (48) ‖ link sequence (8, big-endian) ‖ tag (16) ‖ payload. The header
/// contains the payload length (`FrameHeader.lengthEnd`).
public struct StreamDemultiplexer: Sendable {
  /// The length of a TLS record header, in bytes. The last two bytes of this header are the length field.
  public static let recordHeaderBytes = 5
  /// The maximum of the length field of a protected TLS 1.3 record (RFC 8446, section 5.2). The records of the AEAD
  /// suites of TLS 1.2 are shorter.
  public static let recordBytesMax = 16384 + 256
  /// The first byte of a sealed frame. The first byte includes the version of the frame format.
  public static let sealedMarker = FrameHeader.marker
  public static let sealedHeaderBytes = FrameHeader.byteCount
  public static let sealedSequenceBytes = 8
  public static let sealedTagBytes = 16
  /// The number of bytes before the payload of a sealed frame.
  public static let sealedOverheadBytes = sealedHeaderBytes + sealedSequenceBytes + sealedTagBytes
  public static let sealedPayloadBytesMax = Limits.framePayloadBytesMax

  /// The reason why a stream cannot be parsed further. The raw value is used in counters and the journal.
  public enum Refusal: UInt8, Error, Sendable {
    /// The first byte begins neither a TLS record nor a sealed frame.
    case unknownFirstByte = 1
    /// A TLS record is longer than `recordBytesMax`.
    case recordTooLong = 2
    /// A sealed frame has no payload.
    case sealedEmpty = 3
    /// A sealed frame has a payload longer than `sealedPayloadBytesMax`.
    case sealedTooLong = 4
  }

  /// The kind of the first bytes of the input.
  public enum Piece: Equatable, Sendable {
    /// Bytes of one or more TLS records. The first and the last record may be incomplete.
    case records(byteCount: Int)
    /// Bytes of one sealed frame. These bytes include the frame's first byte if `begins`, and its last byte if `ends`.
    case sealed(byteCount: Int, begins: Bool, ends: Bool)
  }

  private enum Unit {
    case none, record, sealed
  }

  private var unit = Unit.none
  /// The number of bytes of the unit read so far, counted only up to the end of the length field.
  private var seen = 0
  /// The value of the length field while that field is being read. After the length field, the value is the number of
  /// bytes of the unit that remain.
  private var remaining = 0
  private var refusal: Refusal?

  public init() {}

  /// Whether the input so far ends between two units. A stream that ends elsewhere is truncated.
  public var isBetweenUnits: Bool { unit == .none }

  /// The kind and number of the first bytes of `input`; nil if `input` is empty. An error is final: every later call
  /// throws the same error.
  public mutating func next(in input: UnsafeRawBufferPointer) throws(Refusal) -> Piece? {
    if let refusal { throw refusal }
    if input.isEmpty { return nil }
    if unit == .none { unit = try kind(of: input[0]) }
    switch unit {
    case .none: return nil
    case .record: return try records(input)
    case .sealed: return try sealed(input)
    }
  }

  /// Returns all consecutive records at the start of the input as one piece, so that TLS processes them together.
  private mutating func records(_ input: UnsafeRawBufferPointer) throws(Refusal) -> Piece {
    var offset = 0
    while true {
      let start = offset
      do throws(Refusal) {
        try advance(input, &offset)
      } catch {
        // The records before the invalid one are valid, so they are returned first.
        if start > 0 { return .records(byteCount: start) }
        throw error
      }
      guard unit == .none, offset < input.count, Self.isRecord(input[offset]) else {
        return .records(byteCount: offset)
      }
      unit = .record
    }
  }

  private mutating func sealed(_ input: UnsafeRawBufferPointer) throws(Refusal) -> Piece {
    let begins = seen == 0
    var offset = 0
    try advance(input, &offset)
    return .sealed(byteCount: offset, begins: begins, ends: unit == .none)
  }

  private mutating func kind(of first: UInt8) throws(Refusal) -> Unit {
    if Self.isRecord(first) { return .record }
    if first == Self.sealedMarker { return .sealed }
    throw refuse(.unknownFirstByte)
  }

  private static func isRecord(_ first: UInt8) -> Bool { first >= 20 && first <= 23 }

  /// Moves `offset` to the end of the current unit, or to the end of the input if the unit is longer.
  private mutating func advance(_ input: UnsafeRawBufferPointer, _ offset: inout Int) throws(Refusal) {
    // The bytes from the start of the unit to the end of its length field.
    let prefixBytes = unit == .record ? Self.recordHeaderBytes : FrameHeader.lengthEnd
    if seen < prefixBytes {
      while seen < prefixBytes, offset < input.count {
        if seen >= prefixBytes &- 2 { remaining = remaining &<< 8 | Int(input[offset]) }
        seen &+= 1
        offset &+= 1
      }
      if seen < prefixBytes { return }
      if unit == .record {
        if remaining > Self.recordBytesMax { throw refuse(.recordTooLong) }
      } else {
        if remaining == 0 { throw refuse(.sealedEmpty) }
        if remaining > Self.sealedPayloadBytesMax { throw refuse(.sealedTooLong) }
        remaining &+= Self.sealedOverheadBytes &- prefixBytes
      }
    }
    let count = min(remaining, input.count &- offset)
    remaining &-= count
    offset &+= count
    if remaining == 0 {
      unit = .none
      seen = 0
    }
  }

  private mutating func refuse(_ reason: Refusal) -> Refusal {
    refusal = reason
    return reason
  }
}
