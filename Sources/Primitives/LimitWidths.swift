extension Limits {
  /// An array with an element for each link slot.
  public typealias PerLink<Element> = FixedArray<64, Element>
  /// An array with an element for each node record of the mesh.
  public typealias PerNode<Element> = FixedArray<256, Element>

  /// Calls `body` for each field of the core whose width bounds a limit. The arguments of `body` are the description of
  /// the field, the greatest value that the limits allow, and the greatest value that fits. Table indices are not
  /// included, because `Table` checks its indices.
  public static func eachWidth(_ body: (_ field: StaticString, _ greatest: Int, _ fits: Int) -> Void) {
    body("links: sets of slots, 64 bits", linksMax, UInt64.bitWidth)
    body("links: arrays by slot", linksMax, PerLink<UInt8>.count)
    body("links: holders of a share", FairShare.holders, FairShare.fits)
    body("links: slot of a route and ingress of a flow, 8 bits; this node's own is one above them", linksMax, 0xFF)
    body("frames: payload length, 16 bits", framePayloadBytesMax, 0xFFFF)
    body("frames: hops, 8 bits, of which the last is never reached", Int(hopsMax) + 1, 0xFF)
    body("mesh: links of a path through each node once, 8 bits", nodesMax - 1, 0xFF)
    body("pool: blocks, and flows that each hold one, 16 bits", queueBlocksMax, 0xFFFF)
    body("pool: offset in a block, 16 bits", queueBlockBytes, 0xFFFF)
    body("pool: frames of one flow, 16 bits", flowFramesMax, 0xFFFF)
    body("pool: frames of one ingress, 16 bits", neighbourFramesMax, 0xFFFF)
    body("pool: a frame's header in its flow's first two blocks", frameHeaderBytes, queueBlockBytes)
    body("pool: bytes of one flow, 32 bits", flowBytesMaxBulk, Int(UInt32.max))
    body("pool: deficit of a flow, 31 bits", 2 * frameBytesMax, Int(Int32.max))
    body("mesh: record numbers and one, 16 bits", nodesMax + 1, 0xFFFF)
    body("mesh: arrays by record", nodesMax, PerNode<UInt8>.count)
    body("mesh: rank of a neighbour in a way, 8 bits", linksMax - 1, 0xFF)
    body("mesh: neighbours of an advertisement, 8 bits", neighboursMax, 0xFF)
    body("mesh: length of an advertisement, 16 bits", advertisementBytesMax, 0xFFFF)
    body("mesh: keys of a deny-list, 16 bits", deniedMax, 0xFFFF)
    body("peers: bytes of a display name", displayNameBytesMax, 64)
    body("peers: pairs of discovery info, 8 bits", infoPairsMax, 0xFF)
    body("peers: bytes of a pair, 8 bits", infoPairBytesMax, 0xFF)
  }

  /// Traps when a limit exceeds the width of a field. The daemon calls this function once, at its start.
  public static func checkWidths() {
    eachWidth { _, greatest, fits in precondition(greatest <= fits) }
  }
}
