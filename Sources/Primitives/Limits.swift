/// All limits of the core.
///
/// The comment of each limit names who can use it up. The ledger (`Ledger` in Relay) adds up the memory of all of them
/// and compares the sum with the unit's memory limit. `eachWidth` reports how far a limit can be raised before a field
/// is too narrow. Other nodes depend on these limits too: a sender must respect the queue limits of relays
/// (docs/protocol.md, "Limits").
public enum Limits {
  // MARK: Frames

  /// The longest frame payload, in bytes: 16 KiB of plaintext and the overhead of encryption.
  public static let framePayloadBytesMax = 16_640
  /// A frame's fixed header, in bytes.
  public static let frameHeaderBytes = 48
  public static let frameBytesMax = frameHeaderBytes + framePayloadBytesMax
  /// The frame payload that every link must accept, in bytes: one advertisement.
  public static let framePayloadBytesFloor = 2_048
  /// The most links on the path of a frame. A mesh of `nodesMax` nodes never needs more in practice.
  public static let hopsMax: UInt8 = 16

  // MARK: Links

  /// Concurrent links over all bearers. Each belongs to a neighbour that has proved its key.
  public static let linksMax = 64
  /// Bytes of control frames queued on one link, in memory reserved for them. They are one advertisement at a time, and
  /// hellos, pings, pongs and goodbyes. A neighbour that pings faster than its link accepts pongs loses pongs.
  public static let queueBytesMaxControl = 8_192

  // MARK: Queued frames

  /// The pool of blocks in which the frames of all links are queued. Its 4 MiB are one second of Wi-Fi at 4 MB/s;
  /// longer queues only add delay.
  public static let queueBlockBytes = 2_048
  public static let queueBlocksMax = 2_048
  /// Bytes of the pool that one neighbour, or this node itself, may hold while at least as many are free. A single
  /// holder can have 1 MiB, and each of n greedy ones 1/(n + 1) of the pool. With 64 neighbours that is 64 KiB, which
  /// exceeds three frames of maximum length.
  public static let neighbourQueueBytesMax = 1_048_576
  /// Frames that one neighbour, or this node itself, may have queued. Frames of 256 bytes on average use up the byte
  /// quota first.
  public static let neighbourFramesMax = 4_096
  /// Bytes queued for one link, so a neighbour that does not read holds no more. Frames from one ingress may occupy as
  /// many bytes of it as remain free, which is at most half.
  public static let linkQueueBytesMax = 1_048_576
  /// Bytes queued for one flow (source and destination over one link). Bulk gets a delivery window in flight,
  /// interactive less, and realtime only what is still useful when late.
  public static let flowBytesMaxRealtime = 32_768
  public static let flowBytesMaxInteractive = 65_536
  public static let flowBytesMaxBulk = 262_144
  public static let flowFramesMax = 1_024
  /// A waiting class may send one frame after this many bytes of more urgent frames.
  public static let passedOverBytesMax = 65_536

  // MARK: Mesh

  /// Nodes known at once: this node and every node with an accepted, unexpired advertisement.
  public static let nodesMax = 256
  /// Neighbours that one node may list in its advertisement.
  public static let neighboursMax = 64
  /// The longest advertisement, in bytes. It holds 64 neighbours of 24 bytes, or 1300 bytes of discovery info and the
  /// names. Both include key and signature.
  public static let advertisementBytesMax = 2_048
  /// Keys that one operator may revoke: the number that fits a deny-list as long as an advertisement.
  public static let deniedMax = 112

  // MARK: Checks of signatures

  /// Signatures per second that this node verifies because others sent them, in equal parts for the links that
  /// delivered them. This takes a fifth of the processor time of a small board. Any neighbour can use up its own part.
  public static let checksPerSecond: UInt64 = 150
  /// The burst of checks of all links together. A single link gets half of it.
  public static let checksAtOnceMax = 32
  /// Checks in a row before other events are handled. One takes 2.6 million instructions on aarch64 (counted by QEMU:
  /// nettle 3.10 with GMP). On a Raspberry Pi 4 at 1.5 GHz and 1.3 instructions per cycle it takes 1.33 ms. Other
  /// events may wait for 5 ms: three checks take 4 ms and leave 1 ms for their consequences.
  public static let checksPerPiece = 3
  /// After this time without a check the next piece begins automatically.
  public static let pieceTime = TimeSpan.milliseconds(5)
  /// The pause before links that have used their shares are served again. In this time one link regains three checks.
  public static let checkPause = TimeSpan.milliseconds(20)
  /// Handshakes of encrypted sessions per second that others may begin, in equal parts for the links that carry them.
  /// Each takes 20 million instructions on aarch64, the time of eight checks. On a Raspberry Pi 4 the client's part
  /// takes 10.4 ms in one piece, and the server's two pieces of 5.3 ms. `handshakesAtOnceMax` is the burst of all links
  /// together. A single link gets half of it, which is twice the number of channels.
  public static let handshakesPerSecond: UInt64 = 10
  public static let handshakesAtOnceMax = 256
  /// Replies per second to forgeable frames for which no state is kept, in equal parts for the links that carry the
  /// frames. They are session requests, cookies, refusals and unencrypted resets; all together they take 12 kB/s.
  /// `repliesAtOnceMax` is the burst of all links together. A single link gets half of it, which is two replies for
  /// each channel.
  public static let repliesPerSecond: UInt64 = 100
  public static let repliesAtOnceMax = 256
  /// The checks of a link's share that session tables leave to advertisements.
  public static let checksSparedByTables = 4
  /// Bytes of advertisements and deny-lists that await their check, with headers. Any neighbour can use its share. A
  /// single one gets half, which is seven of maximum length; those that find no room are requested again later. A full
  /// queue is empty after 16 pieces.
  public static let waitingFrameBytesMax = 32_768
  /// The longest of these frames, in bytes.
  public static let waitingFrameBytesEach = frameHeaderBytes + advertisementBytesMax + 64

  // MARK: Discovery

  /// Candidate addresses of nodes: the sum of what all sources may hold, so no source can displace another's. Anyone on
  /// a network can announce the 256 DNS-SD services. Anyone in radio range can advertise the 512 peers of four
  /// Bluetooth adapters. The remaining 32 are configured peers. Each source itself replaces unproven candidates by new
  /// ones.
  public static let candidatesMax = 256 + 512 + 32
  /// The longest display name, in bytes of UTF-8.
  public static let displayNameBytesMax = 63
  /// The longest service type, in bytes (RFC 6335, section 5.1).
  public static let serviceTypeBytesMax = 15
  /// The longest `key=value` pair of discovery info, in bytes (RFC 6763, section 6.1).
  public static let infoPairBytesMax = 255
  /// Discovery info pairs of a node. The count field is one byte.
  public static let infoPairsMax = 255
  /// Services that the applications of a node offer at once.
  public static let servicesMax = 16
  /// Discovery info of a node in bytes, each pair with its length byte (RFC 6763, section 6.2).
  public static let infoBytesMax = 1_300

  // MARK: Associations

  /// Concurrent peers with an association (reliable delivery).
  public static let channelsMax = 64
  /// The longest message, in bytes.
  public static let messageBytesMax = 65_536
}
