import Primitives

/// Constants of the Service Discovery Protocol (SDP). A PDU begins with its kind, its transaction number, and the
/// number of bytes that follow (Core Specification 5.4, Vol 3, Part B, 4.2).
enum SDP {
  static let errorResponse: UInt8 = 0x01
  static let searchRequest: UInt8 = 0x02
  static let attributeRequest: UInt8 = 0x04
  static let searchAttributeRequest: UInt8 = 0x06
  static let searchAttributeResponse: UInt8 = 0x07

  static let headerBytes = 5
  /// The smallest MTU of an L2CAP channel, in bytes (Vol 3, Part A, 5.1).
  static let unitBytesMin = 48
  /// The maximum length of a continuation state in bytes (4.3).
  static let continuationBytesMax = 16

  static let service = DataElement(type: DataElement.uuid, value: CausewayService.uuid.reversed())
  static let rfcomm = DataElement(uuid: 0x0003)
  static let protocolList: UInt16 = 0x0004

  static func pdu(_ kind: UInt8, _ transaction: UInt16, _ parameters: [UInt8]) -> [UInt8] {
    var out = [kind]
    out.append(bigEndian: transaction)
    out.append(bigEndian: UInt16(truncatingIfNeeded: parameters.count))
    return out + parameters
  }
}

/// The SDP server for this node's service records (Core Specification 5.4, Vol 3, Part B, 4). The server returns a
/// response to each request, and keeps no state. The continuation state of an answer is the number of bytes that the
/// client already has. For the next part, the server makes the complete answer again.
struct SDPServer {
  /// The maximum length of a request in bytes. A pattern of twelve long UUIDs has 218 bytes; the rest is for a list of
  /// attributes.
  static let requestBytesMax = 672
  /// The maximum number of UUIDs in a search pattern (4.5.1).
  private static let patternMax = 12
  /// The handle of the first record.
  private static let firstHandle: UInt32 = 0x0001_0000
  private static let offsetBytes = 2
  private static let byteCountMin: UInt16 = 7

  /// The attributes of a record, in ascending order.
  private typealias Record = [(id: UInt16, value: DataElement)]
  private let records: [Record]

  /// Creates a server with the record of the Causeway service, which names this RFCOMM channel. With `hasNetwork` there
  /// is a second record, that of a network access point.
  init(channel: UInt8, hasNetwork: Bool = false) {
    let l2cap = DataElement(uuid: 0x0100)
    let publicBrowseRoot = DataElement(uuid: 0x1002)
    let english = [
      DataElement(unsigned: UInt16(0x656E)), .init(unsigned: UInt16(106)), .init(unsigned: UInt16(0x0100)),
    ]
    let causeway: Record = [
      (0x0000, DataElement(unsigned: Self.firstHandle)),
      (0x0001, DataElement(sequence: [SDP.service])),
      (
        SDP.protocolList,
        DataElement(sequence: [
          DataElement(sequence: [l2cap]), DataElement(sequence: [SDP.rfcomm, DataElement(unsigned: channel)]),
        ])
      ),
      (0x0005, DataElement(sequence: [publicBrowseRoot])),
      (0x0006, DataElement(sequence: english)),
      (0x0100, DataElement(type: DataElement.text, value: Array("Causeway".utf8))),
    ]
    records = hasNetwork ? [causeway, Self.networkAccessPoint] : [causeway]
  }

  /// The record of the network access point (Personal Area Networking Profile 1.0, 7.1.2), decoded.
  private static var networkAccessPoint: Record {
    let bytes = NetworkAccessPoint.record
    var reader = ByteReader(bytes.span.bytes, orThrow: TooShort())
    var record: Record = []
    while let id = try? reader.element().number, let value = try? reader.element() {
      record.append((UInt16(id), value))
    }
    return record
  }

  /// The answer to one PDU, at most `unitBytes` long, or `SDP.unitBytesMin` if that is more; nil if the PDU is not a
  /// request.
  func respond(to pdu: [UInt8], unitBytes: Int) -> [UInt8]? {
    var header = ByteReader(pdu.span.bytes, orThrow: TooShort())
    guard let kind = try? header.u8(), kind & 1 == 0, let transaction = try? header.u16(),
      let length = try? header.u16()
    else { return nil }
    do throws(Refusal) {
      guard Int(length) == header.remaining else { throw .invalidSize }
      var reader = ByteReader(pdu.span.bytes, orThrow: Refusal.invalidSyntax)
      _ = try reader.array(SDP.headerBytes)
      // The response also holds the length of the attributes and the continuation state.
      let bytesMax = max(unitBytes, SDP.unitBytesMin) - SDP.headerBytes - 2 - 1 - Self.offsetBytes
      return SDP.pdu(kind + 1, transaction, try answer(kind, &reader, bytesMax))
    } catch {
      return SDP.pdu(SDP.errorResponse, transaction, [0, error.rawValue])
    }
  }

  private func answer(
    _ kind: UInt8, _ reader: inout ByteReader<Refusal>, _ bytesMax: Int
  ) throws(Refusal) -> [UInt8] {
    switch kind {
    case SDP.searchRequest: try search(&reader)
    case SDP.attributeRequest: try attributes(&reader, bytesMax)
    case SDP.searchAttributeRequest: try searchAttributes(&reader, bytesMax)
    case _: throw .invalidSyntax
    }
  }

  /// Answers Service Search (4.5.1) with the handles of the records that contain every UUID of the pattern.
  private func search(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [UInt8] {
    let isFound = try matches(&reader)
    let countMax = try reader.u16()
    guard countMax > 0 else { throw .invalidSyntax }
    guard try offset(&reader) == 0 else { throw .invalidContinuation }
    var out: [UInt8] = [0, 0, 0, 0]
    for index in records.indices where isFound[index] && out[1] < countMax {
      out[1] += 1
      out[3] += 1
      out.append(bigEndian: Self.firstHandle + UInt32(index))
    }
    return out + [0]
  }

  /// Answers Service Attribute (4.6.1) with attributes of one record.
  private func attributes(_ reader: inout ByteReader<Refusal>, _ bytesMax: Int) throws(Refusal) -> [UInt8] {
    let handle = try reader.u32()
    guard handle >= Self.firstHandle, case let index = Int(handle - Self.firstHandle), index < records.count else {
      throw .invalidHandle
    }
    let byteCount = try byteCount(&reader)
    return try part(selection(list(&reader), index).bytes, &reader, min(byteCount, bytesMax))
  }

  /// Answers Service Search Attribute (4.7.1) with attributes of the records that contain every UUID of the pattern.
  private func searchAttributes(_ reader: inout ByteReader<Refusal>, _ bytesMax: Int) throws(Refusal) -> [UInt8] {
    let isFound = try matches(&reader)
    let byteCount = try byteCount(&reader)
    let list = try list(&reader)
    var found: [DataElement] = []
    for index in records.indices where isFound[index] { found.append(selection(list, index)) }
    return try part(DataElement(sequence: found).bytes, &reader, min(byteCount, bytesMax))
  }

  /// Reads a search pattern. Returns for each record whether it contains every UUID of the pattern.
  private func matches(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [Bool] {
    guard let pattern = try reader.element().elements, (1...Self.patternMax).contains(pattern.count) else {
      throw .invalidSyntax
    }
    var isFound = [Bool](repeating: true, count: records.count)
    for element in pattern {
      guard let uuid = element.longUUID else { throw .invalidSyntax }
      for index in records.indices where !contains(records[index], uuid) { isFound[index] = false }
    }
    return isFound
  }

  private func byteCount(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> Int {
    let byteCount = try reader.u16()
    guard byteCount >= Self.byteCountMin else { throw .invalidSyntax }
    return Int(byteCount)
  }

  /// Whether a record contains a UUID.
  private func contains(_ record: Record, _ uuid: [UInt8]) -> Bool {
    record.contains { $0.value.contains(longUUID: uuid) }
  }

  /// Reads a list of attribute identifiers. Each element is one identifier (16 bits), or the first and the last
  /// identifier of a range (32 bits). All elements are returned as ranges.
  private func list(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [UInt32] {
    guard let list = try reader.element().elements, !list.isEmpty else { throw .invalidSyntax }
    var ranges: [UInt32] = []
    for element in list {
      guard let number = element.number, element.value.count >= 2 else { throw .invalidSyntax }
      let range = element.value.count == 4 ? number : number << 16 | number
      guard range >> 16 <= range & 0xFFFF else { throw .invalidSyntax }
      ranges.append(range)
    }
    return ranges
  }

  /// The attributes of the record at `index` whose identifiers are in `list`.
  private func selection(_ list: [UInt32], _ index: Int) -> DataElement {
    var out: [DataElement] = []
    for (id, value) in records[index] {
      for range in list where range >> 16 <= id && id <= range & 0xFFFF {
        out += [DataElement(unsigned: id), value]
        break
      }
    }
    return DataElement(sequence: out)
  }

  /// The next part of the answer `whole`, after the bytes that the client already has: at most `bytesMax` bytes. The
  /// result contains the part's length, its bytes, and the continuation state.
  private func part(
    _ whole: [UInt8], _ reader: inout ByteReader<Refusal>, _ bytesMax: Int
  ) throws(Refusal) -> [UInt8] {
    let start = try offset(&reader)
    guard start < whole.count else { throw .invalidContinuation }
    let end = min(whole.count, start + bytesMax)
    var out: [UInt8] = []
    out.append(bigEndian: UInt16(end - start))
    out += whole[start..<end]
    if end == whole.count { return out + [0] }
    out.append(UInt8(Self.offsetBytes))
    out.append(bigEndian: UInt16(end))
    return out
  }

  /// Reads the continuation state, with which every request ends. Returns the number of bytes that the client already
  /// has.
  private func offset(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> Int {
    let byteCount = try reader.u8()
    guard Int(byteCount) == reader.remaining else { throw .invalidSyntax }
    if byteCount == 0 { return 0 }
    guard Int(byteCount) == Self.offsetBytes, case let offset = try reader.u16(), offset > 0 else {
      throw .invalidContinuation
    }
    return Int(offset)
  }
}

/// The codes of an Error Response (4.4.1).
private enum Refusal: UInt8, Error {
  case invalidHandle = 2
  case invalidSyntax = 3
  case invalidSize = 4
  case invalidContinuation = 5
}
