import Frame
import Primitives

/// Converts lower-case hexadecimal digits to bytes. Spaces and line feeds are ignored.
public func hex(_ digits: String) -> [UInt8] {
  var bytes: [UInt8] = []
  var high: UInt8?
  for digit in digits.utf8 where digit != 0x20 && digit != 0x0A {
    let nibble = digit >= 0x61 ? digit - 0x61 + 10 : digit - 0x30
    precondition(nibble < 16, "not a lower-case hexadecimal digit")
    if let left = high {
      bytes.append(left << 4 | nibble)
      high = nil
    } else {
      high = nibble
    }
  }
  precondition(high == nil, "half a byte")
  return bytes
}

/// The bytes that `write` writes, at most 20 000.
public func encoded(_ write: (inout OutputRawSpan) -> Void) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: 20_000) { buffer, count in
    var output = OutputRawSpan(buffer: UnsafeMutableRawBufferPointer(buffer), initializedCount: 0)
    write(&output)
    count = output.byteCount
  }
}

/// The error that `body` throws, or nil.
public func refusal(_ body: () throws(FrameError) -> Void) -> FrameError? {
  do throws(FrameError) {
    try body()
    return nil
  } catch {
    return error
  }
}

extension RawSpan {
  /// A copy of the bytes.
  public var array: [UInt8] { withUnsafeBytes { [UInt8]($0) } }
}

extension Array where Element == UInt8 {
  /// A copy of the bytes after `changes`.
  public func with(_ changes: (inout [UInt8]) -> Void) -> [UInt8] {
    var copy = self
    changes(&copy)
    return copy
  }
}

extension DisplayName {
  /// Creates a display name for tests. Traps if the text is not a legal display name.
  public init(_ text: String) {
    let bytes = [UInt8](text.utf8)
    do throws(FrameError) {
      self = try DisplayName(bytes.span.bytes)
    } catch {
      preconditionFailure("not a display name")
    }
  }

  public var text: String { String(decoding: (0..<byteCount).map { byte($0) }, as: UTF8.self) }
}

/// Page-aligned zeroed memory for a structure of the core, which is freed when this object is released.
public final class Borrowed {
  public let bytes: UnsafeMutableRawBufferPointer
  public init(_ byteCount: Int) {
    bytes = .allocate(byteCount: byteCount, alignment: 4096)
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
  }
  deinit { bytes.deallocate() }
}

extension Hello {
  public init(bytes: [UInt8]) throws { self = try Hello(bytes.span.bytes) }
}

extension Goodbye {
  public init(bytes: [UInt8]) throws { self = try Goodbye(bytes.span.bytes) }
}

extension FrameHeader {
  public init(bytes: [UInt8]) throws { self = try FrameHeader(bytes.span.bytes) }
}
