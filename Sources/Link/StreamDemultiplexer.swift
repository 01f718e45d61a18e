import Frame
import Primitives

/// Tells the two kinds of unit on a link's byte stream apart by their first byte (the technique of RFC 7983):
/// TLS records begin with 20–23 (RFC 8446, section 5.1), sealed frames beside them with 0x81.
///
/// Incremental: `next` is given whatever bytes there are, in any split, and says what the first of them are;
/// the caller goes on behind them. It keeps no bytes, so whoever needs a whole sealed frame joins its pieces.
///
/// A sealed frame on the wire: frame header (48) ‖ link sequence (8, big-endian) ‖ tag (16) ‖ payload, whose length
/// the header tells (`FrameHeader.lengthEnd`).
public struct StreamDemultiplexer: Sendable {
  /// A TLS record: five bytes of header, of which the last two are the length.
  public static let recordHeaderBytes = 5
  /// The longest protected record of TLS 1.3 (RFC 8446, section 5.2); the AEAD suites of TLS 1.2 stay below.
  public static let recordBytesMax = 16384 + 256
  /// The first byte of a sealed frame: frame marker and version.
  public static let sealedMarker = FrameHeader.marker
  public static let sealedHeaderBytes = FrameHeader.byteCount
  public static let sealedSequenceBytes = 8
  public static let sealedTagBytes = 16
  /// What stands before the payload.
  public static let sealedOverheadBytes = sealedHeaderBytes + sealedSequenceBytes + sealedTagBytes
  public static let sealedPayloadBytesMax = Limits.framePayloadBytesMax

  /// Why a stream cannot be followed any further. The raw value is for counters and the journal.
  public enum Refusal: UInt8, Error, Sendable {
    /// Neither a TLS record nor a sealed frame begins with this byte.
    case unknownFirstByte = 1
    /// A TLS record longer than `recordBytesMax`.
    case recordTooLong = 2
    /// A sealed frame without payload.
    case sealedEmpty = 3
    /// A sealed frame with a payload above `sealedPayloadBytesMax`.
    case sealedTooLong = 4
  }

  /// What the first bytes of the input are.
  public enum Piece: Equatable, Sendable {
    /// Bytes of one or more TLS records, possibly beginning or ending inside one.
    case records(byteCount: Int)
    /// Bytes of one sealed frame: from its first byte when `begins`, up to its last when `ends`.
    case sealed(byteCount: Int, begins: Bool, ends: Bool)
  }

  private enum Unit {
    case none, record, sealed
  }

  private var unit = Unit.none
  /// Bytes of the unit that were seen, up to and including its length field.
  private var seen = 0
  /// The length field as far as it was seen; then the bytes of the unit that are still to come.
  private var remaining = 0
  private var refusal: Refusal?

  public init() {}

  /// True between two units: the only place where a stream may end.
  public var isBetweenUnits: Bool { unit == .none }

  /// What the first bytes of `input` are, nil when it is empty. A refusal is final: every later call throws it again.
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

  /// As many records in a row as the input holds, for one pass through TLS.
  private mutating func records(_ input: UnsafeRawBufferPointer) throws(Refusal) -> Piece {
    var offset = 0
    while true {
      let start = offset
      do throws(Refusal) {
        try advance(input, &offset)
      } catch {
        // The records before it are good: hand them over first.
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

  /// Advances through the unit as far as the input goes; at its end the next one may begin.
  private mutating func advance(_ input: UnsafeRawBufferPointer, _ offset: inout Int) throws(Refusal) {
    // Up to and including the two bytes of the length field.
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
