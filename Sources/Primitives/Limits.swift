/// All limits of the core.
///
/// The comment of a limit names the parties that can exhaust it. `Ledger` in `Relay` adds up the memory of all limits,
/// and a test compares the sum with the `MemoryMax` of the systemd unit. `eachWidth` reports how far a limit can be
/// raised before a field is too narrow. Other nodes depend on these limits too: a sender must respect the queue limits
/// of relays (docs/protocol.md, "Limits").
public enum Limits {
  // MARK: Frames

  /// The maximum length of a frame's payload, in bytes: 16 KiB of plaintext and the overhead of encryption.
  public static let framePayloadBytesMax = 16_640
  /// The length of a frame's fixed header, in bytes.
  public static let frameHeaderBytes = 48
  public static let frameBytesMax = frameHeaderBytes + framePayloadBytesMax
  /// The length of frame payload that every link must accept, in bytes: the maximum length of an advertisement.
  public static let framePayloadBytesFloor = 2_048
  /// The maximum number of links on the path of a frame. In practice, a mesh of `nodesMax` nodes needs no longer path.
  public static let hopsMax: UInt8 = 16

  // MARK: Links

  /// The maximum number of concurrent links over all bearers together. Each link belongs to a neighbour that has proved
  /// its key.
  public static let linksMax = 64
  /// The maximum number of bytes of control frames that are queued on one link. Control frames have their own memory:
  /// one advertisement at a time, hellos, pings, pongs and goodbyes. If a neighbour pings faster than its link accepts
  /// pongs, some pongs are dropped.
  public static let queueBytesMaxControl = 8_192

  // MARK: Queued frames

  /// The length of a block in bytes, and the number of blocks, of the pool in which the frames of all links are queued.
  /// The 4 MiB of the pool are sent in one second by Wi-Fi at 4 MB/s. Longer queues would only add delay.
  public static let queueBlockBytes = 2_048
  public static let queueBlocksMax = 2_048
  /// The maximum number of bytes of the pool that the frames from one neighbour, or from this node itself, may occupy.
  /// The frames of one neighbour may not occupy more than remains free. A single greedy neighbour can occupy 1 MiB, and
  /// each of n greedy neighbours 1/(n + 1) of the pool. With 64 greedy neighbours this share is about 64 KiB, which is
  /// more than three frames of maximum length.
  public static let neighbourQueueBytesMax = 1_048_576
  /// The maximum number of queued frames from one neighbour, or from this node itself. If frames are longer than 256
  /// bytes on average, `neighbourQueueBytesMax` is reached first.
  public static let neighbourFramesMax = 4_096
  /// The maximum number of bytes queued for one link. This limit bounds the memory that a neighbour can occupy by not
  /// reading. Frames from one ingress (a neighbour or this node) may occupy no more of these bytes than remain free, so
  /// at most half.
  public static let linkQueueBytesMax = 1_048_576
  /// The maximum number of bytes queued for one flow: frames of one priority with the same source and destination on
  /// one link. The bulk limit has room for the delivery window of a channel, and the interactive limit is smaller. The
  /// realtime limit is the smallest, because late realtime frames are useless.
  public static let flowBytesMaxRealtime = 32_768
  public static let flowBytesMaxInteractive = 65_536
  public static let flowBytesMaxBulk = 262_144
  public static let flowFramesMax = 1_024
  /// A priority class with queued frames may send one frame after the link sent this many bytes of more urgent frames.
  public static let passedOverBytesMax = 65_536

  // MARK: Mesh

  /// The maximum number of nodes known at once: this node, and every node with an accepted, unexpired advertisement.
  public static let nodesMax = 256
  /// The maximum number of neighbours that one node may list in its advertisement.
  public static let neighboursMax = 64
  /// The maximum length of an advertisement, in bytes. This length has room for 64 neighbours of 24 bytes each, or for
  /// 1300 bytes of discovery info and the names. In either case there is also room for the key and the signature.
  public static let advertisementBytesMax = 2_048
  /// The maximum number of keys that one operator may revoke. A deny-list may be as long as an advertisement, and this
  /// number of keys fits into it.
  public static let deniedMax = 112

  // MARK: Checks of signatures

  /// The maximum number of received signatures that this node verifies in a second. The number is divided equally among
  /// the links that deliver signatures. This number of checks uses a fifth of the processor time of a small board. Any
  /// neighbour can exhaust its own part.
  public static let checksPerSecond: UInt64 = 150
  /// The maximum burst of signature checks for all links together. A single link gets half of the burst.
  public static let checksAtOnceMax = 32
  /// The maximum number of checks that follow each other before other events are handled (a piece). Verifying one
  /// signature takes 2.6 million instructions on aarch64 (counted by QEMU: nettle 3.10 with GMP). On a Raspberry Pi 4
  /// at 1.5 GHz and 1.3 instructions per cycle, one check takes 1.33 ms. Other events may wait for 5 ms: three checks
  /// take 4 ms and leave 1 ms for the work that follows from them.
  public static let checksPerPiece = 3
  /// The number of steps of a computation of routes that take as long as one check (`Mesh.computeRoutes`). The number
  /// is an estimate: the largest network has 36,000 steps, which take about 7 million instructions, and a check takes
  /// 2.6.
  public static let routeStepsPerCheck = 12_288
  /// The minimum time between two removals of expired advertisements.
  public static let expiryPause = TimeSpan.milliseconds(100)
  /// A check that comes at least this long after the beginning of a piece begins a new piece.
  public static let pieceTime = TimeSpan.milliseconds(5)
  /// The pause before checks continue for links that have used their shares. During the pause a single link regains
  /// three checks.
  public static let checkPause = TimeSpan.milliseconds(20)
  /// The number of handshakes of end-to-end encryption that other nodes may begin in a second. The number is divided
  /// equally among the links that carry the handshakes. The computation of one handshake takes 20 million instructions
  /// on aarch64, the time of eight signature checks. On a Raspberry Pi 4 the client's computation takes 10.4 ms without
  /// a break. The server computes twice for 5.3 ms. `handshakesAtOnceMax` is the maximum burst for all links together.
  /// A single link gets half of the burst, which is twice the number of channels.
  public static let handshakesPerSecond: UInt64 = 10
  public static let handshakesAtOnceMax = 256
  /// The maximum number of stateless replies to forgeable frames in a second. The number is divided equally among the
  /// links that carry the frames. The replies are session requests, cookies, refusals and unencrypted resets. At the
  /// maximum rate all replies together take 12 kB/s. `repliesAtOnceMax` is the maximum burst for all links together. A
  /// single link gets half of the burst, which is two replies for each channel.
  public static let repliesPerSecond: UInt64 = 100
  public static let repliesAtOnceMax = 256
  /// The number of checks in a link's share that checks of session tables leave for checks of advertisements.
  public static let checksSparedByTables = 4
  /// The maximum number of bytes of advertisements and deny-lists that wait for the check of their signature, with
  /// frame headers. Any neighbour can exhaust its share. A single neighbour gets half, which is seven frames of maximum
  /// length. A frame for which there is no room is dropped, and the node requests its advertisement again later. A full
  /// queue is empty after 16 pieces.
  public static let waitingFrameBytesMax = 32_768
  /// The maximum length of a frame that waits for the check of its signature, in bytes.
  public static let waitingFrameBytesEach = frameHeaderBytes + advertisementBytesMax + 64

  // MARK: Discovery

  /// The maximum number of candidate addresses of nodes. This maximum is the sum of the maxima of all sources, so no
  /// source can displace the candidates of another source. Anyone on a network can announce the 256 DNS-SD services.
  /// Anyone in radio range can advertise the 512 peers of four Bluetooth adapters. The remaining 32 addresses are
  /// configured peers. A source that is full replaces candidates that have not proved their key by new candidates.
  public static let candidatesMax = 256 + 512 + 32
  /// The maximum length of a display name, in bytes of UTF-8.
  public static let displayNameBytesMax = 63
  /// The maximum length of a service type, in bytes (RFC 6335, section 5.1).
  public static let serviceTypeBytesMax = 15
  /// The maximum length of a `key=value` pair of discovery info, in bytes (RFC 6763, section 6.1).
  public static let infoPairBytesMax = 255
  /// The maximum number of discovery info pairs of a node. The count field is one byte.
  public static let infoPairsMax = 255
  /// The maximum number of services that all applications of a node offer at once.
  public static let servicesMax = 16
  /// The maximum length of a node's discovery info, in bytes. Each pair includes its length byte (RFC 6763, section
  /// 6.2).
  public static let infoBytesMax = 1_300

  // MARK: Associations

  /// The maximum number of peers with which this node has an association (reliable delivery) at once.
  public static let channelsMax = 64
  /// The maximum length of a message, in bytes.
  public static let messageBytesMax = 65_536
}
