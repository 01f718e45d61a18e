import Primitives

/// The GATT service that identifies Causeway nodes and phones, and its advertisement.
///
/// The advertisement contains the flags (added by the kernel) and the service UUID: 3 + 18 of 31 bytes. With the UUID
/// there, an app that is in the background of a phone finds this node. The node's hint (the first 8 bytes of its id)
/// does not fit into the same packet as the UUID. So the scan response carries the hint as 128-bit service data. The
/// response has 26 of 31 bytes, or 27 for a node that does not forward for others.
enum CausewayService {
  /// 8A1C0001-6F5B-4E0B-9E5C-CA05E4A10001 in wire order: least significant byte first.
  static let uuid: [UInt8] = [
    0x01, 0x00, 0xA1, 0xE4, 0x05, 0xCA, 0x5C, 0x9E, 0x0B, 0x4E, 0x5B, 0x6F, 0x01, 0x00, 0x1C, 0x8A,
  ]
  /// ABDD3056-28FA-441D-A470-55A75A52553A: the characteristic whose value is the PSM, little-endian.
  static let psmCharacteristic: [UInt8] = [
    0x3A, 0x55, 0x52, 0x5A, 0xA7, 0x55, 0x70, 0xA4, 0x1D, 0x44, 0xFA, 0x28, 0x56, 0x30, 0xDD, 0xAB,
  ]

  /// The AD types, which mark the structures of an advertisement (Core Specification Supplement, Part A, 1.1 and 1.11;
  /// Assigned Numbers, 2.3).
  private static let incompleteUUIDs: UInt8 = 0x06
  private static let completeUUIDs: UInt8 = 0x07
  private static let serviceData: UInt8 = 0x21

  /// The advertisement without the flags, which the kernel adds in front.
  static var advertisement: [UInt8] { [UInt8(1 + uuid.count), completeUUIDs] + uuid }

  /// Bit 0 of the byte of flags after the hint: the node does not forward for others (a leaf).
  private static let isLeaf: UInt8 = 1

  /// The facts that an advertisement claims about its node, without a proof.
  struct Claim: Equatable {
    /// The node's hint; 0 for none.
    var hint: UInt64 = 0
    var relays = true
  }

  /// The scan response: service data with the hint, most significant byte first. A node that does not forward for
  /// others adds a byte of flags.
  static func scanResponse(_ claim: Claim) -> [UInt8] {
    var data = uuid
    data.append(bigEndian: claim.hint)
    if !claim.relays { data.append(isLeaf) }
    return [UInt8(1 + data.count), serviceData] + data
  }

  /// The UUID that carries the claim in answers to inquiries, in addition to the service's UUID. This UUID consists of
  /// 8A1C0002-6F5B-4E0B and the hint. For a node that does not forward for others, the UUID begins with 8A1C0003. The
  /// bytes of the UUID are in wire order.
  static func claimUUID(_ claim: Claim) -> [UInt8] {
    var hint: [UInt8] = []
    hint.append(littleEndian: claim.hint)
    return hint + uuid[8..<12] + [claim.relays ? 2 : 3] + uuid[13...]
  }

  /// Parses the data of a Device Found event: an advertisement and its scan response, concatenated by the kernel, or an
  /// extended inquiry response (EIR). Returns nil if the Causeway service is not in the data.
  ///
  /// Unknown flags, and bytes after them, are ignored. Parsing stops at a malformed structure; the structures before it
  /// are used (Core Specification 5.4, Vol 3, Part C, 11).
  static func claim(in data: [UInt8]) -> Claim? {
    var isOurs = false
    var claim = Claim()
    var reader = ByteReader(data.span.bytes, orThrow: TooShort())
    while let length = try? reader.u8(), length > 0, let structure = try? reader.array(Int(length)) {
      switch structure[0] {
      case incompleteUUIDs, completeUUIDs:
        var offset = 1
        while structure.count - offset >= uuid.count {
          if structure.holds(uuid, at: offset) { isOurs = true }
          let hint = structure[offset..<(offset + 8)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
          let told = Claim(hint: hint, relays: structure[offset + 12] == 2)
          if structure.holds(claimUUID(told), at: offset) { claim = told }
          offset += uuid.count
        }
      case serviceData:
        let flags = 1 + uuid.count + 8
        guard structure.count >= flags, structure.holds(uuid, at: 1) else { break }
        isOurs = true
        claim.hint = structure[(1 + uuid.count)..<flags].reduce(0) { $0 << 8 | UInt64($1) }
        claim.relays = structure.count == flags || structure[flags] & isLeaf == 0
      case _: break
      }
    }
    return isOurs ? claim : nil
  }
}

extension [UInt8] {
  /// Whether the bytes from `offset` on begin with `other`.
  func holds(_ other: [UInt8], at offset: Int) -> Bool {
    guard offset >= 0, count - offset >= other.count else { return false }
    for index in 0..<other.count where self[offset + index] != other[index] { return false }
    return true
  }
}
