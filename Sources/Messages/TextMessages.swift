import Primitives

/// Kind 1: a text of 1 to `MessageLimits.textBytesMax` bytes of UTF-8, without a header.
public struct TextMessage: Equatable, Sendable {
  /// Valid UTF-8.
  public let utf8: [UInt8]

  public init(utf8: [UInt8]) throws(MessageRefusal) {
    try Self.check(utf8.span.bytes)
    self.utf8 = utf8
  }

  public init(_ bytes: RawSpan) throws(MessageRefusal) {
    try Self.check(bytes)
    utf8 = [UInt8](copying: bytes)
  }

  public var message: Message { Message(kind: .text, bytes: utf8) }

  private static func check(_ bytes: RawSpan) throws(MessageRefusal) {
    guard bytes.byteCount > 0 else { throw .empty }
    guard bytes.byteCount <= MessageLimits.textBytesMax else { throw .tooLong }
    guard UTF8Text.isValid(bytes) else { throw .notUTF8 }
  }
}

/// Kind 0: a report to the sender about messages that a node received.
///
///     0 code · 1 the kind it is about · 2–3 reserved 0
public struct ControlMessage: Equatable, Sendable {
  /// What is reported.
  public enum Code: UInt8, Sendable, CaseIterable {
    /// No application there listens for messages of the kind; the message was dropped.
    case noListener = 1
  }
  public static let byteCount = 4

  public var code: Code
  /// As received; may be unknown here.
  public var kind: UInt8

  public init(code: Code, kind: UInt8) {
    self.code = code
    self.kind = kind
  }

  public init(_ bytes: RawSpan) throws(MessageRefusal) {
    guard bytes.byteCount >= Self.byteCount else { throw .tooShort }
    guard bytes.byteCount == Self.byteCount else { throw .tooLong }
    guard let code = Code(rawValue: bytes.octet(0)) else { throw .unknownCode }
    guard bytes.octet(2) == 0, bytes.octet(3) == 0 else { throw .reservedNotZero }
    self.init(code: code, kind: bytes.octet(1))
  }

  public var message: Message { Message(kind: .control, bytes: [code.rawValue, kind, 0, 0]) }
}
