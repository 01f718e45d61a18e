/// All limits of the core. The comment of a limit says who can use a place. The memory of all places together is in the
/// ledger (`Ledger` in Relay), whose sum is compared with the unit's memory limit. `eachWidth` says how far a limit can
/// be raised before a field is too narrow. Other nodes depend on the limits too: a sender must respect what a relay
/// queues (docs/protocol.md, "Limits").
public enum Limits {
  // MARK: Frames

  /// The longest frame payload, in bytes: 16 KiB of plaintext and the overhead of sealing.
  public static let framePayloadBytesMax = 16_640
  /// A frame's fixed header, in bytes.
  public static let frameHeaderBytes = 48
  public static let frameBytesMax = frameHeaderBytes + framePayloadBytesMax
  /// The frame payload that every link accepts, in bytes: one advertisement.
  public static let framePayloadBytesFloor = 2_048
  /// The most links on the path of a frame. More than any mesh of `nodesMax` nodes needs in practice.
  public static let hopsMax: UInt8 = 16

  // MARK: Links

  /// Links at once, over all bearers: neighbours whose key is proven.
  public static let linksMax = 64
  /// Bytes of control frames queued on one link, in memory of its own: one advertisement at a time, and hellos, pings,
  /// pongs and goodbyes. A neighbour that pings faster than its link takes pongs loses pongs.
  public static let queueBytesMaxControl = 8_192

  // MARK: Queued frames

  /// The frames of all links are queued in one pool of blocks, 4 MiB: one second of Wi-Fi at 4 MB/s. Longer queues help
  /// nobody.
  public static let queueBlockBytes = 2_048
  public static let queueBlocksMax = 2_048
  /// Bytes of the pool that one neighbour, or this node itself, may hold, as long as as much is still free. A single
  /// one may hold 1 MiB; n greedy ones hold 1/(n + 1) of the pool each: 64 neighbours 64 KiB, which is more than three
  /// frames of the greatest length.
  public static let neighbourQueueBytesMax = 1_048_576
  /// Frames that one neighbour, or this node itself, may have queued: frames of 256 bytes on average use up the quota
  /// in bytes.
  public static let neighbourFramesMax = 4_096
  /// Bytes queued for one link: a neighbour that does not read holds no more. What came from one neighbour, or is this
  /// node's own, holds as much as is free, at most half.
  public static let linkQueueBytesMax = 1_048_576
  /// Bytes queued of one flow (source and destination, over one link): for bulk a delivery window in flight, for
  /// interactive less, for realtime what is still useful when late.
  public static let flowBytesMaxRealtime = 32_768
  public static let flowBytesMaxInteractive = 65_536
  public static let flowBytesMaxBulk = 262_144
  public static let flowFramesMax = 1_024
  /// After this many bytes of more urgent frames a waiting class may send one frame.
  public static let passedOverBytesMax = 65_536

  // MARK: Mesh

  /// Nodes known at once: this node, and every node with an accepted advertisement that has not expired.
  public static let nodesMax = 256
  /// Neighbours one node may list in its advertisement.
  public static let neighboursMax = 64
  /// The longest advertisement, in bytes: 64 neighbours of 24 bytes, or 1300 bytes of discovery info and the names; in
  /// both cases with key and signature.
  public static let advertisementBytesMax = 2_048
  /// Keys that one operator may revoke: as many as fit a deny-list of the length of an advertisement.
  public static let deniedMax = 112

  // MARK: Checks of signatures

  /// Signatures that are checked a second because others sent them, in equal parts for the links over which they came: a fifth
  /// of the time of a small board's processor. Any neighbour can use up its own part.
  public static let checksPerSecond: UInt64 = 150
  /// Checks at once by all links together; one alone has half.
  public static let checksAtOnceMax = 32
  /// Checks in a row, before other events are looked at. One takes 2.6 million instructions on aarch64 (counted by QEMU: nettle
  /// 3.10 with GMP), and so 1.33 ms on a Raspberry Pi 4, at 1.5 GHz and 1.3 instructions a cycle: three take 4 ms, and 1 ms is
  /// left for what follows from them, of the 5 ms that other events may have to wait.
  public static let checksPerPiece = 3
  /// After this time without a check the next piece begins by itself.
  public static let pieceTime = TimeSpan.milliseconds(5)
  /// When the links with something to check have their shares, they are asked again after this time: three checks of one link
  /// have come back by then.
  public static let checkPause = TimeSpan.milliseconds(20)
  /// Handshakes of sealed sessions that others may begin, in equal parts for the links over which they come. Each takes 20 million
  /// instructions on aarch64, as eight checks do: the client's in one piece, which is 10.4 ms on a Raspberry Pi 4, the server's in
  /// two of 5.3 ms. At once by all links together; one alone has half, which is twice as many as there are channels.
  public static let handshakesPerSecond: UInt64 = 10
  public static let handshakesAtOnceMax = 256
  /// Answers a second to frames that anybody can forge and for which no state is kept, in equal parts for the links that bring
  /// the frames: requests for sessions, cookies, refusals, resets in clear. All together are 12 kB/s. At once by all links
  /// together; one alone has half, which is two answers for each channel.
  public static let repliesPerSecond: UInt64 = 100
  public static let repliesAtOnceMax = 256
  /// What session tables leave of a link's share to advertisements.
  public static let checksSparedByTables = 4
  /// Bytes of advertisements and deny-lists that wait for their check, with headers. Any neighbour can use its share: one
  /// alone half, which is 7 of the greatest length; what finds no room is asked for again. What waits is gone after 16 pieces.
  public static let waitingFrameBytesMax = 32_768
  /// One of them.
  public static let waitingFrameBytesEach = frameHeaderBytes + advertisementBytesMax + 64

  // MARK: Discovery

  /// Addresses where a node may be reached: the sum of what the sources may hold, so that none takes the places of another.
  /// 256 services of DNS-SD, which whoever is on a network can announce; 512 peers over four Bluetooth adapters, which whoever is
  /// in range can advertise; 32 configured peers. Each source gives the places of unproven ones to newcomers by itself.
  public static let candidatesMax = 256 + 512 + 32
  /// A display name in bytes of UTF-8.
  public static let displayNameBytesMax = 63
  /// A service type in bytes (RFC 6335, 5.1).
  public static let serviceTypeBytesMax = 15
  /// One `key=value` of discovery info in bytes (RFC 6763, 6.1).
  public static let infoPairBytesMax = 255
  /// Pairs of discovery info of a node: the count is one byte.
  public static let infoPairsMax = 255
  /// Services that the applications of a node offer at once.
  public static let servicesMax = 16
  /// All discovery info of a node in bytes, each pair with its length byte (RFC 6763, 6.2).
  public static let infoBytesMax = 1_300

  // MARK: Associations

  /// Peers with an association (reliable delivery) at once.
  public static let channelsMax = 64
  /// One message in bytes.
  public static let messageBytesMax = 65_536
}
