import Primitives

/// A request to a neighbour to resend advertisements. docs/protocol.md, "Request".
public struct AdvertisementRequest: ~Escapable {
  /// The maximum number of nodes in one request.
  public static let nodesMax = 64
  static let headByteCount = 4

  /// The number of nodes whose advertisements are requested. 0 requests all advertisements that the neighbour has.
  public let count: Int
  private let nodes: RawSpan

  /// Checks and views a request. Throws `.truncated`, `.overLength`, `.malformed`.
  @_lifetime(copy payload)
  public init(_ payload: RawSpan) throws(FrameError) {
    var reader = ByteReader(payload, orThrow: FrameError.truncated)
    count = Int(try reader.u8())
    let reserved = (try reader.u8(), try reader.u16())
    if count > Self.nodesMax { throw .overLength }
    nodes = try reader.span(count * NodeID.byteCount)
    if reader.remaining != 0 || reserved != (0, 0) { throw .malformed }
    for index in 0..<count where node(index) == .none { throw .malformed }
  }

  /// The id of the node at `index`, 0 to `count` − 1.
  public func node(_ index: Int) -> NodeID { nodes.nodeID(index * NodeID.byteCount) }

  public static func byteCount(_ count: Int) -> Int { headByteCount + count * NodeID.byteCount }

  /// Writes all fields before the ids. The caller appends `count` ids.
  @_lifetime(output: copy output)
  public static func writeHead(count: Int, to output: inout OutputRawSpan) {
    output.append(UInt8(count))
    output.append(0)
    output.append(bigEndian: UInt16(0))
  }
}
