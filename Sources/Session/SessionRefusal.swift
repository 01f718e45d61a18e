/// Why bytes of another node are not a legal message of a session. Counted by name.
public enum SessionRefusal: UInt8, Error, Sendable, CaseIterable {
  /// A field is not all there.
  case truncated
  /// Bytes after the end, or a length or count above its limit.
  case tooLong
  /// A kind, code or state that this version does not know.
  case unknownCode
  case reservedNotZero
  /// A number that is zero, or outside its range.
  case outOfRange
  /// An index of a session that the table does not list, or entries that are not in their order.
  case malformed
  /// Not UTF-8, or with control characters.
  case notText
}
