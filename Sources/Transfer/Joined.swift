/// Returns a new array with the bytes of all parts. Each part is copied in one operation, because `append(contentsOf:)`
/// of Embedded Swift (6.3.1) copies element by element.
public func joined(_ parts: ArraySlice<UInt8>...) -> [UInt8] { joined(parts) }

public func joined(_ parts: [ArraySlice<UInt8>]) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: parts.reduce(0) { $0 + $1.count }) { buffer, filled in
    for part in parts {
      let free = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
      part.withUnsafeBytes { free.copyMemory(from: $0) }
      filled += part.count
    }
  }
}
