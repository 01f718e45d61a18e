import Capture
import Primitives
import Status

/// The codec of the compound fields in packets of the control socket.
extension [UInt8] {
  /// Appends a text with its length byte, truncated to 255 bytes, the limit of the protocol.
  mutating func append(text: String) {
    let utf8 = text.utf8.prefix(255)
    append(UInt8(utf8.count))
    self += utf8
  }

  mutating func append(_ wish: CaptureWish) {
    append(ControlProtocol.captureType)
    append((wish.withPayload ? 1 : 0) | (wish.link == nil ? 0 : 2) | (wish.neighbour == nil ? 0 : 4))
    append(wish.link ?? 0)
    append(wish.neighbour ?? .none)
  }

  mutating func append(_ peer: PeerStatus) {
    append(peer.id)
    append(peer.hops)
    append(peer.bearer.rawValue)
    append(peer.via)
    append(text: peer.name)
    append(text: peer.serviceType)
    let pairs = peer.info.prefix(255)
    append(UInt8(pairs.count))
    for pair in pairs { append(text: pair) }
    append((peer.isInClear ? 1 : 0) | (peer.isParked ? 2 : 0))
  }
}

extension ByteReader<ControlSyntaxError> {
  mutating func text() throws(ControlSyntaxError) -> String {
    String(decoding: try array(Int(try u8())), as: UTF8.self)
  }

  mutating func captureWish() throws(ControlSyntaxError) -> CaptureWish {
    let flags = try u8(), link = try u8(), neighbour = try nodeID()
    var wish = CaptureWish()
    wish.withPayload = flags & 1 != 0
    if flags & 2 != 0 { wish.link = link }
    if flags & 4 != 0 { wish.neighbour = neighbour }
    return wish
  }

  mutating func hop() throws(ControlSyntaxError) -> ControlHop {
    let node = try nodeID()
    guard let bearer = BearerKind(rawValue: try u8()) else { throw ControlSyntaxError() }
    return ControlHop(node: node, bearer: bearer, name: try text())
  }

  mutating func peer() throws(ControlSyntaxError) -> PeerStatus {
    let id = try nodeID()
    let hops = try u8()
    guard let bearer = BearerKind(rawValue: try u8()) else { throw ControlSyntaxError() }
    let via = try nodeID()
    var peer = PeerStatus(
      id: id, name: try text(), serviceType: try text(), info: [], hops: hops, bearer: bearer, via: via)
    let count = try u8()
    for _ in 0..<count { peer.info.append(try text()) }
    let flags = try u8()
    peer.isInClear = flags & 1 != 0
    peer.isParked = flags & 2 != 0
    return peer
  }
}
