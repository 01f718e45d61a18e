import Configuration
import Primitives
import Reactor

/// A number of seconds from the command line; nil if it is invalid.
public func parseSeconds(_ value: String) -> UInt64? { ByteString(value).number(in: 1...1_000_000) }

/// The values that `parseSeconds` accepts, as text for an error.
public let secondsAccepted: StaticString = "a number of seconds from 1 to 1000000"

/// The instant that is `seconds` after `now`, or `.never` if `seconds` is nil.
public func deadline(after seconds: UInt64?, from now: Instant = monotonicNow()) -> Instant {
  guard let seconds else { return .never }
  return now + .seconds(seconds)
}

/// The highest number of bytes that `byteCount` accepts.
private let byteCountMax: UInt64 = 1 << 62

/// A number of bytes from the command line, with an optional decimal unit (k, M or G): 5G is 5,000,000,000 bytes. Nil
/// if the text is invalid.
public func byteCount(_ text: String) -> UInt64? {
  var digits = Array(text.utf8), factor: UInt64 = 1
  switch digits.last {
  case UInt8(ascii: "k"): factor = 1_000
  case UInt8(ascii: "M"): factor = 1_000_000
  case UInt8(ascii: "G"): factor = 1_000_000_000
  default: break
  }
  if factor > 1 { digits.removeLast() }
  let number = ByteString(String(decoding: digits, as: UTF8.self)).number(in: 1...byteCountMax / factor)
  return number.map { $0 * factor }
}
