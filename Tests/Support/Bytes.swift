import Frame
import Primitives

/// The bytes that hexadecimal digits spell; blanks and line ends between them are free.
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

/// What `write` writes.
public func encoded(_ write: (inout OutputRawSpan) -> Void) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: 20_000) { buffer, count in
    var output = OutputRawSpan(buffer: UnsafeMutableRawBufferPointer(buffer), initializedCount: 0)
    write(&output)
    count = output.byteCount
  }
}

/// The refusal that `body` throws; nil when it throws none.
public func refusal(_ body: () throws(FrameRefusal) -> Void) -> FrameRefusal? {
  do throws(FrameRefusal) {
    try body()
    return nil
  } catch {
    return error
  }
}

extension RawSpan {
  /// The bytes, copied.
  public var array: [UInt8] { withUnsafeBytes { [UInt8]($0) } }
}

extension Array where Element == UInt8 {
  /// The bytes with some of them exchanged.
  public func with(_ changes: (inout [UInt8]) -> Void) -> [UInt8] {
    var copy = self
    changes(&copy)
    return copy
  }
}

extension DisplayName {
  /// A name for tests. Traps when the text is no display name.
  public init(_ text: String) {
    let bytes = [UInt8](text.utf8)
    do throws(FrameRefusal) {
      self = try DisplayName(bytes.span.bytes)
    } catch {
      preconditionFailure("not a display name")
    }
  }

  public var text: String { String(decoding: (0..<byteCount).map { byte($0) }, as: UTF8.self) }
}

/// Memory that a structure of the core borrows, given back with its owner.
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
