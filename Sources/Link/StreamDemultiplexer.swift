import Frame
import Primitives

/// Tells the two kinds of unit on a link's byte stream apart by their first byte (the technique of RFC 7983): TLS
/// records begin with 20–23 (RFC 8446, section 5.1), sealed frames with 0x81.
///
/// Incremental: `next` takes input that is split anywhere and says what its first bytes are; the caller continues after
/// them. It stores no bytes, so a caller that needs a whole sealed frame must join the pieces.
///
/// A sealed frame on the wire: frame header (48) ‖ link sequence (8, big-endian) ‖ tag (16) ‖ payload, whose length is
/// in the header (`FrameHeader.lengthEnd`).
public struct StreamDemultiplexer: Sendable {
  /// A TLS record header: five bytes, of which the last two are the length.
  public static let recordHeaderBytes = 5
  /// The longest protected record of TLS 1.3 (RFC 8446, section 5.2); the AEAD suites of TLS 1.2 stay below.
  public static let recordBytesMax = 16384 + 256
  /// The first byte of a sealed frame: frame marker and version.
  public static let sealedMarker = FrameHeader.marker
  public static let sealedHeaderBytes = FrameHeader.byteCount
  public static let sealedSequenceBytes = 8
  public static let sealedTagBytes = 16
  /// Bytes before the payload.
  public static let sealedOverheadBytes = sealedHeaderBytes + sealedSequenceBytes + sealedTagBytes
  public static let sealedPayloadBytesMax = Limits.framePayloadBytesMax

  /// Why a stream cannot be parsed any further. The raw value is used in counters and the journal.
  public enum Refusal: UInt8, Error, Sendable {
    /// The byte begins neither a TLS record nor a sealed frame.
    case unknownFirstByte = 1
    /// A TLS record longer than `recordBytesMax`.
    case recordTooLong = 2
    /// A sealed frame without payload.
    case sealedEmpty = 3
    /// A sealed frame with a payload above `sealedPayloadBytesMax`.
    case sealedTooLong = 4
  }

  /// The kind of the first bytes of the input.
  public enum Piece: Equatable, Sendable {
    /// Bytes of one or more TLS records; the first and the last may be incomplete.
    case records(byteCount: Int)
    /// Bytes of one sealed frame: from its first byte when `begins`, up to its last when `ends`.
    case sealed(byteCount: Int, begins: Bool, ends: Bool)
  }

  private enum Unit {
    case none, record, sealed
  }

  private var unit = Unit.none
  /// Bytes of the unit read so far, counted up to and including its length field.
  private var seen = 0
  /// While the length field is read: its value so far. Then: the remaining bytes of the unit.
  private var remaining = 0
  private var refusal: Refusal?

  public init() {}

  /// True between two units. A stream may end only there.
  public var isBetweenUnits: Bool { unit == .none }

  /// The kind of the first bytes of `input`; nil when it is empty. A refusal is final: every later call throws it
  /// again.
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

  /// As many consecutive records as the input holds, for one pass through TLS.
  private mutating func records(_ input: UnsafeRawBufferPointer) throws(Refusal) -> Piece {
    var offset = 0
    while true {
      let start = offset
      do throws(Refusal) {
        try advance(input, &offset)
      } catch {
        // The records before it are valid: return them first.
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

  /// Advances through the unit as far as the input reaches. At the unit's end the next one may begin.
  private mutating func advance(_ input: UnsafeRawBufferPointer, _ offset: inout Int) throws(Refusal) {
    // The header up to and including the two bytes of the length field.
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
