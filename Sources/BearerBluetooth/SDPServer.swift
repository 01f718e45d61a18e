import Primitives

/// A PDU of SDP begins with its kind, the number of the transaction, and how many bytes follow (Core Specification 5.4,
/// Vol 3, Part B, 4.2).
enum SDP {
  static let errorResponse: UInt8 = 0x01
  static let searchRequest: UInt8 = 0x02
  static let attributeRequest: UInt8 = 0x04
  static let searchAttributeRequest: UInt8 = 0x06
  static let searchAttributeResponse: UInt8 = 0x07

  static let headerBytes = 5
  /// The smallest unit that every L2CAP channel carries (Vol 3, Part A, 5.1).
  static let unitBytesMin = 48
  /// The longest continuation state (4.3).
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

/// The server of SDP for one record: request in, response out. It keeps no state: a continuation state is the number of the
/// bytes that the client has already, and the rest is made anew (Core Specification 5.4, Vol 3, Part B, 4).
struct SDPServer {
  /// The longest request that is read. A pattern of twelve long UUIDs has 218 bytes; the rest is for a list of attributes.
  static let requestBytesMax = 672
  /// UUIDs in a search pattern (4.5.1).
  private static let patternMax = 12
  private static let recordHandle: UInt32 = 0x0001_0000
  private static let offsetBytes = 2
  private static let byteCountMin: UInt16 = 7

  private let record: [(id: UInt16, value: DataElement)]

  /// A server of the Causeway service, which is at `channel` of RFCOMM.
  init(channel: UInt8) {
    let l2cap = DataElement(uuid: 0x0100)
    let publicBrowseRoot = DataElement(uuid: 0x1002)
    let english = [
      DataElement(unsigned: UInt16(0x656E)), .init(unsigned: UInt16(106)), .init(unsigned: UInt16(0x0100)),
    ]
    record = [
      (0x0000, DataElement(unsigned: Self.recordHandle)),
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
  }

  /// The answer to one PDU, at most `unitBytes` long, but `SDP.unitBytesMin` always; nil for what is no request.
  func respond(to pdu: [UInt8], unitBytes: Int) -> [UInt8]? {
    var header = ByteReader(pdu.span.bytes, orThrow: TooShort())
    guard let kind = try? header.u8(), kind & 1 == 0, let transaction = try? header.u16(),
      let length = try? header.u16()
    else { return nil }
    do throws(Refusal) {
      guard Int(length) == header.remaining else { throw .invalidSize }
      var reader = ByteReader(pdu.span.bytes, orThrow: Refusal.invalidSyntax)
      _ = try reader.array(SDP.headerBytes)
      // Beside the attributes stand their length and the continuation state.
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

  /// 4.5.1: the handles of the records that have each UUID.
  private func search(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> [UInt8] {
    let isFound = try matches(&reader)
    guard try reader.u16() > 0 else { throw .invalidSyntax }
    guard try offset(&reader) == 0 else { throw .invalidContinuation }
    let count: UInt8 = isFound ? 1 : 0
    var out: [UInt8] = [0, count, 0, count]
    if isFound { out.append(bigEndian: Self.recordHandle) }
    return out + [0]
  }

  /// 4.6.1: attributes of a record.
  private func attributes(_ reader: inout ByteReader<Refusal>, _ bytesMax: Int) throws(Refusal) -> [UInt8] {
    guard try reader.u32() == Self.recordHandle else { throw .invalidHandle }
    let byteCount = try byteCount(&reader)
    return try part(selection(&reader).bytes, &reader, min(byteCount, bytesMax))
  }

  /// 4.7.1: attributes of the records that have each UUID.
  private func searchAttributes(_ reader: inout ByteReader<Refusal>, _ bytesMax: Int) throws(Refusal) -> [UInt8] {
    let isFound = try matches(&reader)
    let byteCount = try byteCount(&reader)
    let selection = try selection(&reader)
    return try part(
      DataElement(sequence: isFound ? [selection] : []).bytes, &reader, min(byteCount, bytesMax))
  }

  /// Whether the record has each UUID of a search pattern.
  private func matches(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> Bool {
    guard let pattern = try reader.element().elements, (1...Self.patternMax).contains(pattern.count) else {
      throw .invalidSyntax
    }
    var isFound = true
    for element in pattern {
      guard let uuid = element.longUUID else { throw .invalidSyntax }
      if !record.contains(where: { $0.value.contains(longUUID: uuid) }) { isFound = false }
    }
    return isFound
  }

  private func byteCount(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> Int {
    let byteCount = try reader.u16()
    guard byteCount >= Self.byteCountMin else { throw .invalidSyntax }
    return Int(byteCount)
  }

  /// The attributes that a list names: each element is an attribute (16 bits), or the first and the last one of a range
  /// (32 bits).
  private func selection(_ reader: inout ByteReader<Refusal>) throws(Refusal) -> DataElement {
    guard let list = try reader.element().elements, !list.isEmpty else { throw .invalidSyntax }
    var isWanted = [Bool](repeating: false, count: record.count)
    for element in list {
      guard let number = element.number, element.value.count >= 2 else { throw .invalidSyntax }
      let last = UInt16(truncatingIfNeeded: number)
      let first = element.value.count == 4 ? UInt16(truncatingIfNeeded: number >> 16) : last
      guard first <= last else { throw .invalidSyntax }
      for index in record.indices where (first...last).contains(record[index].id) { isWanted[index] = true }
    }
    var out: [DataElement] = []
    for index in record.indices where isWanted[index] {
      out += [DataElement(unsigned: record[index].id), record[index].value]
    }
    return DataElement(sequence: out)
  }

  /// The part of an answer that the client has not yet and that fits: its length, its bytes, the continuation state.
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

  /// The continuation state, with which every request ends.
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
