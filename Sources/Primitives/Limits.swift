/// Every limit of the core, by name. A limit's comment says who can hold a place. What all places cost together stands in
/// the ledger (`Ledger` in Relay), whose sum is held against the memory that the unit grants; how far a limit can be
/// raised before a field is too narrow, in `eachWidth`. Others see the limits too: a sender must respect what a relay
/// queues (docs/protocol.md, "Limits").
public enum Limits {
  // MARK: Frames

  /// The longest frame payload, in bytes: a 16 KiB message chunk and what delivery and sealing add to it.
  public static let framePayloadBytesMax = 16_640
  /// A frame's fixed header, in bytes.
  public static let frameHeaderBytes = 48
  public static let frameBytesMax = frameHeaderBytes + framePayloadBytesMax
  /// The smallest frame payload that every link carries whole: one advertisement.
  public static let framePayloadBytesFloor = 2_048
  /// The most relays that a frame passes. Wider than any mesh of `nodesMax` nodes needs in practice.
  public static let hopsMax: UInt8 = 16

  // MARK: Links

  /// Links at once, whatever the bearer: neighbours that proved their key, and streams that have yet to.
  public static let linksMax = 64
  /// Bytes of control frames queued on one link, its own reserve: one advertisement at a time, and hellos, pings, pongs
  /// and goodbyes. Who pings faster than its link takes pongs loses them.
  public static let queueBytesMaxControl = 8_192

  // MARK: Frames that wait

  /// Frames of all links wait in one pool of blocks, 4 MiB: a second of Wi-Fi at 4 MB/s. Longer waits help nobody.
  public static let queueBlockBytes = 2_048
  public static let queueBlocksMax = 2_048
  /// What one neighbour, or this node itself, may hold of the pool, as long as as much again is free. So one alone may
  /// hold 1 MiB; n that want all hold a part of n + 1 each: 64 neighbours 64 KiB, never less than three longest frames.
  public static let neighbourQueueBytesMax = 1_048_576
  /// Frames that one neighbour, or this node itself, may have waiting: 256 bytes on average fill the quota in bytes.
  public static let neighbourFramesMax = 4_096
  /// What may wait for one link, whoever it came from: a neighbour that does not read costs no more.
  public static let linkQueueBytesMax = 524_288
  /// What may wait of one flow (source and destination, over one link): bulk as much as a window of delivery has under
  /// way, interactive less, realtime what is worth having late.
  public static let flowBytesMaxRealtime = 32_768
  public static let flowBytesMaxInteractive = 65_536
  public static let flowBytesMaxBulk = 262_144
  public static let flowFramesMax = 1_024
  /// Flows with frames waiting, of all links: eight neighbours with as many as one may have.
  public static let flowsMax = 512
  public static let flowsMaxPerNeighbour = 64
  /// After so many bytes of more urgent frames one frame of a class that waits is sent.
  public static let passedOverBytesMax = 65_536

  // MARK: Mesh

  /// Nodes known at once: this one, and every one whose advertisement was accepted and has not aged out.
  public static let nodesMax = 256
  /// Neighbours one node may list in its advertisement.
  public static let neighboursMax = 64
  /// The longest advertisement, in bytes: 64 neighbours of 24 bytes, or 1300 bytes of discovery info and
  /// the names, and in both cases key and signature.
  public static let advertisementBytesMax = 2_048
  /// Keys that one operator may have revoked: what fits a deny-list as long as an advertisement.
  public static let deniedMax = 112
  /// Frame identifiers remembered to forward nothing twice: 2 s of a full Wi-Fi link's frames.
  public static let duplicatesMax = 4_096
  /// Places in which one frame may be remembered.
  public static let duplicatesPerSet = 4

  // MARK: Discovery

  /// Places where a node may be reached, from every discovery source together.
  public static let candidatesMax = 256
  /// A display name in bytes of UTF-8.
  public static let displayNameBytesMax = 63
  /// A service type in bytes (RFC 6335, 5.1).
  public static let serviceTypeBytesMax = 15
  /// One `key=value` of discovery info in bytes (RFC 6763, 6.1).
  public static let infoPairBytesMax = 255
  /// Pairs of discovery info of a node: their number is one byte.
  public static let infoPairsMax = 255
  /// All discovery info of a node in bytes, each pair with its length byte (RFC 6763, 6.2).
  public static let infoBytesMax = 1_300

  // MARK: Associations

  /// Peers with which reliable delivery may be under way at once.
  public static let channelsMax = 64
  /// One message in bytes.
  public static let messageBytesMax = 65_536
}
