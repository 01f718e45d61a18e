import Primitives

/// Requests the RFCOMM channel of the Causeway service from a device's SDP server. The client makes one search, and
/// continues the search until the answer is complete (Core Specification 5.4, Vol 3, Part B, 4.7).
struct SDPClient {
  enum Step: Equatable {
    /// Send this request, and wait for the answer.
    case ask([UInt8])
    /// The service is at this RFCOMM channel.
    case channel(UInt8)
    /// The device does not offer the service.
    case absent
    /// The device refuses the request, with this SDP error code.
    case refused(code: UInt16)
    /// The PDU is not an answer to this request, or the answer exceeds a limit.
    case malformed
  }

  /// The maximum length of an answer in bytes, over all its parts. The list of protocols in one record has about 20
  /// bytes. A device can have several records of the service; the first one is used.
  static let answerBytesMax = 1024
  /// The maximum number of parts of an answer. This limit prevents a device that sends one byte in each part from
  /// keeping this node busy.
  static let partsMax = 16
  /// The server channels of RFCOMM (RFCOMM 1.2, 5.4).
  static let channels: ClosedRange<UInt8> = 1...30

  private var parts: UInt16 = 0
  private var answer: [UInt8] = []

  /// The first request.
  mutating func begin() -> [UInt8] { request(continuation: []) }

  /// Handles a PDU from the device, and returns the next step.
  mutating func received(_ pdu: [UInt8]) -> Step {
    do throws(TooShort) {
      var reader = ByteReader(pdu.span.bytes, orThrow: TooShort())
      let kind = try reader.u8()
      guard try reader.u16() == parts, Int(try reader.u16()) == reader.remaining else { return .malformed }
      if kind == SDP.errorResponse { return .refused(code: try reader.u16()) }
      guard kind == SDP.searchAttributeResponse else { return .malformed }
      let part = try reader.array(Int(try reader.u16()))
      let continuation = try reader.array(Int(try reader.u8()))
      guard reader.remaining == 0, continuation.count <= SDP.continuationBytesMax,
        answer.count + part.count <= Self.answerBytesMax
      else { return .malformed }
      answer += part
      if continuation.isEmpty { return Self.result(answer) }
      return Int(parts) < Self.partsMax ? .ask(request(continuation: continuation)) : .malformed
    } catch {
      return .malformed
    }
  }

  /// A Service Search Attribute request for the list of protocols. Each request has its own transaction number.
  private mutating func request(continuation: [UInt8]) -> [UInt8] {
    parts += 1
    var parameters = DataElement(sequence: [SDP.service]).bytes
    parameters.append(bigEndian: UInt16(Self.answerBytesMax))
    parameters += DataElement(sequence: [DataElement(unsigned: SDP.protocolList)]).bytes
    return SDP.pdu(
      SDP.searchAttributeRequest, parts, parameters + [UInt8(truncatingIfNeeded: continuation.count)] + continuation)
  }

  /// Reads the lists of attributes, one for each record.
  private static func result(_ answer: [UInt8]) -> Step {
    var reader = ByteReader(answer.span.bytes, orThrow: TooShort())
    guard let lists = try? reader.element().elements, reader.remaining == 0 else { return .malformed }
    for list in lists {
      guard let attributes = list.elements else { return .malformed }
      for index in stride(from: 1, to: attributes.count, by: 2)
      where attributes[index - 1] == DataElement(unsigned: SDP.protocolList) {
        if let channel = channel(attributes[index]) { return .channel(channel) }
      }
    }
    return .absent
  }

  /// The channel in a list of protocols. Each protocol is a sequence of its UUID and its parameters.
  private static func channel(_ protocols: DataElement) -> UInt8? {
    for layer in protocols.elements ?? [] {
      guard let fields = layer.elements, fields.count >= 2, fields[0].longUUID == SDP.rfcomm.longUUID,
        let number = fields[1].number, let channel = UInt8(exactly: number), channels.contains(channel)
      else { continue }
      return channel
    }
    return nil
  }
}
