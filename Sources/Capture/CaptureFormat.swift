import Frame
import Primitives

/// The format of a capture: a big-endian pcap file with nanoseconds (draft-ietf-opsawg-pcap) and link type USER0.
///
/// A record consists of the 16-byte pcap header, 16 bytes that state where the frame was captured (`FramePassage`), and
/// the frame. docs/operations/read-the-box.md, “Captures”, describes the fields; docs/wireshark/causeway.lua decodes
/// them.
public enum CaptureFormat {
  /// The link type LINKTYPE_USER0.
  public static let linkType: UInt32 = 147
  public static let recordHeaderBytes = 16
  public static let passageBytes = 16
  /// The maximum size of a record in bytes.
  public static let recordBytesMax = recordHeaderBytes + passageBytes + Limits.frameBytesMax

  /// The header of a capture file.
  public static var fileHeader: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: 0xA1B2_3C4D as UInt32)
    // The file header has version 2.4, and then two reserved fields.
    bytes.append(bigEndian: 0x0002_0004 as UInt32)
    for _ in 0..<2 { bytes.append(bigEndian: 0 as UInt32) }
    bytes.append(bigEndian: UInt32(passageBytes + Limits.frameBytesMax))
    bytes.append(bigEndian: linkType)
    return bytes
  }

  /// Writes a record to the start of `output`, which must have room for the record. If `isWhole` is false, the record
  /// omits the payload, but states the frame's original length. Returns the size of the record in bytes.
  static func write(
    _ passage: FramePassage, _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, isWhole: Bool,
    at time: Instant, to output: UnsafeMutableRawBufferPointer
  ) -> Int {
    let frameBytes = header.count + (isWhole ? payload.count : 0)
    var span = OutputRawSpan(buffer: output, initializedCount: 0)
    span.append(bigEndian: UInt32(truncatingIfNeeded: time.nanoseconds / 1_000_000_000))
    span.append(bigEndian: UInt32(time.nanoseconds % 1_000_000_000))
    span.append(bigEndian: UInt32(passageBytes + frameBytes))
    span.append(bigEndian: UInt32(passageBytes + header.count + payload.count))
    span.append(version)
    span.append(passage.isSent ? 1 : 0)
    span.append(UInt8(truncatingIfNeeded: passage.slot))
    span.append(passage.bearer.rawValue)
    span.append(passage.isOutsideTLS ? 1 : 0)
    for _ in 0..<3 { span.append(0) }
    span.append(bigEndian: passage.neighbour.high)
    let begun = recordHeaderBytes + passageBytes
    UnsafeMutableRawBufferPointer(rebasing: output[begun...]).copyMemory(from: header)
    if isWhole {
      UnsafeMutableRawBufferPointer(rebasing: output[(begun + header.count)...]).copyMemory(from: payload)
    }
    return begun + frameBytes
  }

  /// The size of the record at the start of `bytes`, or nil if the record is incomplete.
  public static func recordByteCount(_ bytes: ArraySlice<UInt8>) -> Int? {
    guard bytes.count >= recordHeaderBytes else { return nil }
    let length = bytes[(bytes.startIndex + 8)..<(bytes.startIndex + 12)].reduce(0) { $0 << 8 | Int($1) }
    return length <= bytes.count - recordHeaderBytes ? recordHeaderBytes + length : nil
  }

  private static let version: UInt8 = 1
}
