import Frame
import Primitives

/// A complete frame in its wire format.
public func frame(
  _ type: FrameType, flags: UInt8 = 0, ttl: UInt8 = 1, priority: FramePriority = .control,
  to destination: NodeID = .none, from source: NodeID, identifier: UInt64 = 0, _ payload: [UInt8]
) -> [UInt8] {
  let header = FrameHeader(
    type: type, flags: flags, ttl: ttl, priority: priority, payloadByteCount: payload.count, destination: destination,
    source: source, identifier: identifier)
  return encoded { output in header.write(to: &output) } + payload
}

/// The frames in `bytes`, in order, up to the first incomplete or illegal frame.
public func frames(in bytes: [UInt8]) -> [(header: FrameHeader, payload: [UInt8])] {
  var rest = bytes[...]
  var found: [(header: FrameHeader, payload: [UInt8])] = []
  while !rest.isEmpty {
    let head = [UInt8](rest.prefix(FrameHeader.byteCount))
    guard let header = try? FrameHeader(head.span.bytes), header.frameByteCount <= rest.count else {
      return found
    }
    rest = rest.dropFirst(FrameHeader.byteCount)
    found.append((header, [UInt8](rest.prefix(header.payloadByteCount))))
    rest = rest.dropFirst(header.payloadByteCount)
  }
  return found
}

/// The payload of a hello frame.
public func helloPayload(
  _ node: NodeID, epoch: UInt64 = 1, name: String = "peer", capabilities: Capabilities = .relay,
  payloadBytesMax: Int = Limits.framePayloadBytesMax
) -> [UInt8] {
  let hello = Hello(
    payloadBytesMax: UInt16(payloadBytesMax), capabilities: capabilities, epoch: epoch, node: node,
    name: DisplayName(name))
  return encoded { output in hello.write(to: &output) }
}

/// The body of a topology advertisement.
public func topologyBody(
  relays: Bool = true, encryption: EncryptionPreference = .required, _ neighbours: [Neighbour]
) -> [UInt8] {
  encoded { output in
    TopologyView.writeHead(
      flags: TopologyFlags(relays: relays, encryption: encryption), count: neighbours.count, to: &output)
    for neighbour in neighbours { neighbour.write(to: &output) }
  }
}

/// The body of a profile advertisement. The caller may pass illegal parts.
public func profileBody(name: [UInt8] = [0x61], service: [UInt8] = [0x78], pairs: [[UInt8]] = []) -> [UInt8] {
  var body = [UInt8(name.count)] + name + [UInt8(service.count)] + service + [UInt8(pairs.count)]
  for pair in pairs { body += [UInt8(pair.count)] + pair }
  return body
}

/// The payload of an advertisement, signed with the stand-in signature.
public func advertisement(
  of identity: Identity, _ kind: AdvertisementKind, epoch: UInt64 = 1, sequence: UInt64 = 1,
  lifetimeSeconds: UInt16 = 180, body: [UInt8]
) -> [UInt8] {
  let point = identity.point
  let signed = encoded { output in
    Advertisement.writeHead(
      kind, lifetimeSeconds: lifetimeSeconds, epoch: epoch, sequence: sequence, point: point.span.bytes,
      to: &output)
    output.append(bytes: body.span.bytes)
  }
  let signature = identity.sign(signed.span.bytes)
  return signed + signature.span.bytes.array
}
