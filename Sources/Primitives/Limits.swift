/// Every limit of the core, by name. A limit's comment says who can hold a slot of it; the sums at the
/// end say what that costs. Raising one is a change of memory, not of behaviour.
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
  /// Bytes queued on one link by priority. Control: hellos, pings and a full exchange of advertisements.
  public static let queueBytesMaxControl = 262_144
  public static let queueBytesMaxRealtime = 32_768
  public static let queueBytesMaxInteractive = 65_536
  public static let queueBytesMaxBulk = 262_144
  /// Sum of one link's memory: its four queues and one frame being put together.
  public static let linkBytes =
    queueBytesMaxControl + queueBytesMaxRealtime + queueBytesMaxInteractive + queueBytesMaxBulk + frameBytesMax

  // MARK: Mesh

  /// Nodes known at once: this one, and every one whose advertisement was accepted and has not aged out.
  public static let nodesMax = 256
  /// Neighbours one node may list in its advertisement.
  public static let neighboursMax = 64
  /// The longest advertisement, in bytes: 64 neighbours of 24 bytes, or 1300 bytes of discovery info and
  /// the names, and in both cases key and signature.
  public static let advertisementBytesMax = 2_048
  /// Frame identifiers remembered to forward nothing twice: 2 s of a full Wi-Fi link's frames.
  public static let duplicatesMax = 4_096

  // MARK: Discovery

  /// Places where a node may be reached, from every discovery source together.
  public static let candidatesMax = 256
  /// A display name in bytes of UTF-8.
  public static let displayNameBytesMax = 63
  /// A service type in bytes (RFC 6335, 5.1).
  public static let serviceTypeBytesMax = 15
  /// One `key=value` of discovery info in bytes (RFC 6763, 6.1).
  public static let infoPairBytesMax = 255
  /// All discovery info of a node in bytes, each pair with its length byte (RFC 6763, 6.2).
  public static let infoBytesMax = 1_300

  // MARK: Delivery

  /// Peers with which reliable delivery may be under way at once.
  public static let channelsMax = 64
  /// One message in bytes.
  public static let messageBytesMax = 65_536
}
