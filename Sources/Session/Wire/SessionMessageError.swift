/// Why bytes of another node are not a valid session message. Each case has its own counter.
public enum SessionMessageError: UInt8, Error, Sendable, CaseIterable {
  /// A field is incomplete.
  case truncated
  /// There are bytes after the end, or a length or count is above its limit.
  case tooLong
  /// A kind, code or state that this version does not know.
  case unknownCode
  case reservedNotZero
  /// A number is zero, or outside its range.
  case outOfRange
  /// An index names a session that the table does not list, or entries are not in order.
  case malformed
  /// A text is not UTF-8, or contains control characters.
  case notText
}
