/// Reads an input from its beginning. Returns zeros behind the end of the input, so that every input is a complete
/// script.
public struct Script {
  private var rest: Slice<UnsafeRawBufferPointer>

  public init(_ input: UnsafeRawBufferPointer) { rest = input[...] }

  public var isOver: Bool { rest.isEmpty }

  public mutating func u8() -> UInt8 { rest.popFirst() ?? 0 }
  public mutating func u16() -> UInt16 { UInt16(u8()) << 8 | UInt16(u8()) }

  /// A number below `count`, from the next byte of the input.
  public mutating func choice(_ count: Int) -> Int { Int(u8()) % count }

  /// The next `byteCount` bytes. There are fewer bytes at the end of the input.
  public mutating func bytes(_ byteCount: Int) -> UnsafeRawBufferPointer {
    defer { rest = rest.dropFirst(byteCount) }
    return UnsafeRawBufferPointer(rebasing: rest.prefix(byteCount))
  }
}

/// Checks a rule that holds for every input. A violation ends the program, which libFuzzer reports as a finding.
public func expect(
  _ condition: Bool, _ rule: @autoclosure () -> String, line: UInt = #line, file: StaticString = #fileID
) {
  if !condition { fatalError(rule(), file: file, line: line) }
}
