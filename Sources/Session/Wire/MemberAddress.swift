import Primitives

/// The address of an application in sessions: a node and the endpoint of one of its services. Ordered by node, then by
/// endpoint.
public struct MemberAddress: Hashable, Comparable, Sendable {
  public static let byteCount = 20

  public let node: NodeID
  /// Identifies a service of the node. The number is never 0.
  public let endpoint: UInt32

  public init(node: NodeID, endpoint: UInt32) {
    self.node = node
    self.endpoint = endpoint
  }

  init(_ reader: inout ByteReader<SessionMessageError>) throws(SessionMessageError) {
    node = try reader.nodeID()
    endpoint = try reader.u32()
    guard node != .none, endpoint != 0 else { throw .outOfRange }
  }

  /// The endpoint of a service, the same after each start of its application. `user` is the application's user id.
  /// `instance` distinguishes two services of one application and type. `type` and `instance` have at most 255 bytes
  /// each.
  public static func endpoint(
    user: UInt32, type: [UInt8], instance: [UInt8], _ cryptography: any SessionCryptography
  ) -> UInt32 {
    var text = [UInt8]("causeway-endpoint-1".utf8)
    text.append(bigEndian: user)
    text.append(UInt8(type.count))
    text += type
    text.append(UInt8(instance.count))
    text += instance
    let digest = cryptography.digest(text.span.bytes)
    return max(digest.span.bytes.word32(0), 1)
  }

  public static func < (a: MemberAddress, b: MemberAddress) -> Bool {
    a.node != b.node ? a.node < b.node : a.endpoint < b.endpoint
  }
}

extension [UInt8] {
  mutating func append(_ address: MemberAddress) {
    append(address.node)
    append(bigEndian: address.endpoint)
  }
}
