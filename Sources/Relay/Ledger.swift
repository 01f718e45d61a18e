import Bearer
import BearerBluetooth
import Channel
import Configuration
import ControlSocket
import DHCP
import Discovery
import Identity
import LocalAPI
import Node
import Primitives
import Seal
import SecureTransport
import Session
import StatusPage
import Text
import Trust
import WiFiDirect

/// The memory ledger of the box: the most bytes that each owner of memory can use. An owner uses the most when all its
/// records exist and each has its maximum size. docs/design/memory.md contains the table; `causeway selftest --limits`
/// prints it.
///
/// The bytes are calculated from the limits and the sizes of records. The memory of libraries and of the kernel is
/// measured or estimated, as the names of the entries state. Buffers of TCP sockets are excluded, because the kernel
/// shrinks them rather than kill a process.
public enum Ledger {
  /// `MemoryMax` of config/causeway.service, in bytes. The kernel kills the daemon if the daemon uses more memory than
  /// `memoryMax`. So the sum of all entries must stay below `memoryMax`.
  public static let memoryMax = 128 << 20

  /// The memory of one owner: a table, a queue, or another part of the daemon with a limit.
  public struct Entry {
    public let owner: StaticString
    /// The maximum number of records of this owner.
    public let recordsMax: Int
    public let bytesEach: Int

    public var bytes: Int { recordsMax * bytesEach }

    init(_ owner: StaticString, _ recordsMax: Int, _ bytesEach: Int) {
      self.owner = owner
      self.recordsMax = recordsMax
      self.bytesEach = bytesEach
    }

    init(_ owner: StaticString, _ bytes: Int) { self.init(owner, 1, bytes) }
  }

  /// The ledger of a box with a journal of `journalBytes`.
  public static func entries(journalBytes: Int = JournalSection().sizeKiB * 1024) -> [Entry] {
    [
      Entry("frames in queues", NodeMemory.framePool),
      Entry("mesh: advertisements, routes", NodeMemory.mesh),
      Entry("mesh: frames waiting for their check", NodeMemory.waitingFrames),
      Entry("links: records and frames", Limits.linksMax, NodeMemory.link),
      Entry("links: TLS, measured", Limits.linksMax, SecureMemory.stream + smallObject),
      Entry(
        "links: handshakes, measured", Admission.handshakesMax + NodeMemory.dialsMax,
        SecureMemory.streamHandshake + smallObject),
      Entry("pending streams", Admission.pendingStreamsMax, BluetoothBearer.receiveBytesMax + smallObject),
      Entry("channels: records", Limits.channelsMax, NodeMemory.association),
      Entry("channels: rings, guaranteed", Limits.channelsMax, ChannelLimits.ringBytesSure),
      Entry("channels: rings, shared", ChannelLimits.ringBudgetBytes),
      Entry("channels: a growing ring", ChannelLimits.bulkRingBytes / 2),
      Entry("DTLS sessions, current and former, measured", 2 * Limits.channelsMax, SecureMemory.session),
      Entry("DTLS sessions: handshakes, measured", SealLimits.handshakesMax, SecureMemory.sessionHandshake),
      Entry("DTLS sessions: chains to decide on", Limits.channelsMax, chainBytesMax),
      Entry("applications' sessions: members", SessionLimits.sessionsMax, SessionMemory.session),
      Entry("applications' sessions: a merged table", SessionMemory.merging),
      Entry("applications' sessions: tables in check", SessionLimits.tablesInCheckMax, SessionMemory.inCheck),
      Entry("applications' sessions: invitations", SessionMemory.invitationsMax, SessionMemory.invitation),
      Entry("applications' sessions: introductions", SessionLimits.introductionsMax, SessionMemory.introduction),
      Entry("applications' sessions: stale memberships", SessionLimits.staleMax, SessionMemory.stale),
      Entry("applications' sessions: gatherings", SessionLimits.gatheringsMax, SessionMemory.gathering),
      Entry("applications' sessions: former members", SessionLimits.formerMembersMax, SessionMemory.formerMember),
      Entry("applications' sessions: signatures", SessionLimits.verifiedMax, SessionMemory.verified),
      Entry(
        "applications' sessions: messages in flight", SessionLimits.unsentMessagesMax,
        SessionMemory.unsentMessage + NodeMemory.flight),
      Entry("applications' sessions: streams", SessionLimits.streamsMax, SessionMemory.stream),
      Entry(
        "applications' sessions: streams, prepared data", SessionLimits.streamsAheadMax,
        (SessionLimits.streamTurnsMax - 1) * SessionLimits.streamTurnBytes),
      Entry("applications' sessions: services", Limits.nodesMax, SessionMemory.services),
      Entry("peers", Limits.nodesMax, NodeMemory.peer),
      Entry("candidates", Limits.candidatesMax, NodeMemory.candidate + CandidateHandles.entryBytes),
      Entry("failures of dials and links", ContactFailures.entriesMax, ContactFailures.byteCount),
      Entry("DNS-SD: services, estimated", DiscoveryMemory.servicesMax, DiscoveryMemory.service),
      Entry("DNS-SD: records, estimated", DiscoveryMemory.recordsMax, DiscoveryMemory.record),
      Entry("DNS-SD: owners of records", DiscoveryMemory.recordsMax, DiscoveryMemory.recordShare),
      Entry("Bluetooth: peers in range", BluetoothRadios.heardMax, BluetoothRadios.heardBytes),
      Entry("Bluetooth classic: SDP requests", BluetoothRadios.recordClientsMax, smallObject),
      Entry("Bluetooth classic: peers of a network", BluetoothRadios.networkPeersMax, smallObject),
      Entry(
        "control socket: requests", ControlProtocol.clientsMax + ControlProtocol.reservedMax,
        ControlProtocol.requestBytesMax),
      Entry("control socket: queues, shared", ControlProtocol.queuedBytesOfAll),
      Entry("captures: frames in queues", ControlProtocol.capturesMax, ControlProtocol.captureBytes),
      Entry("applications: clients", LocalLimits.clientsMax, LocalMemory.client),
      Entry("applications: sessions", SessionLimits.sessionsMax, LocalMemory.session),
      Entry("applications: invitations", SessionLimits.invitationsMax, LocalMemory.invitation),
      Entry("applications: long packets", LocalLimits.longPacketsMax, LocalLimits.packetBytesMax),
      // The factor 2 is for the two directions of a client: requests and events.
      Entry("applications: large transfers", LocalLimits.largeMax, 2 * LocalLimits.largeBytesMax),
      Entry("applications: messages, shared", Int(SessionLimits.sharePoolBytes + SessionLimits.loanPoolBytes)),
      Entry("applications: streams", SessionLimits.streamsMax, LocalMemory.stream),
      Entry("applications: streams, shared", LocalMemory.streamsShared),
      Entry("applications: unreliable messages, shared", LocalLimits.unreliableBytesOfAll),
      Entry("status report", Limits.nodesMax, statusOfPeer),
      Entry(
        "status page: requests and responses", PageServer.connectionsMax, PageServer.connectionBytesMax + smallObject),
      Entry("status page: text", PageContent.bytesMax),
      Entry("Wi-Fi group: addresses", WiFiDirectOptions.leasedAddresses.count, DHCPLeases.leaseBytes),
      Entry("trust: pins, lists, anchors", TrustMemory.bytesMax),
      Entry("journal", journalBytes),
      Entry("shared buffers", sharedBuffers),
      Entry("program and libraries at rest, measured", 5 << 20),
      Entry("kernel: descriptors, page tables, estimated", 4 << 20),
    ]
  }

  public static func sum(_ entries: [Entry]) -> Int { entries.reduce(0) { $0 + $1.bytes } }

  /// The table, one line per owner, in KiB.
  public static func table() -> [String] {
    let entries = entries()
    var lines = entries.map { line(String($0.owner), $0.recordsMax, $0.bytesEach, $0.bytes) }
    lines.append(line("sum", nil, nil, sum(entries)))
    lines.append(line("granted (MemoryMax)", nil, nil, memoryMax))
    return lines
  }

  /// The table as text, below a line that names its columns.
  public static var text: TextBuilder {
    var text = TextBuilder()
    text.add("                                                slots  bytes each      KiB\n")
    for line in table() { text.add("\(line)\n") }
    return text
  }

  /// A warning if a journal of `journalBytes` makes the sum of all entries exceed `memoryMax`; nil otherwise.
  static func excess(journalBytes: Int) -> String? {
    let over = sum(entries(journalBytes: journalBytes)) - memoryMax
    if over <= 0 { return nil }
    let most = (journalBytes - over) / 1024
    return
      "[journal] size: above \(most) KiB, the limits of memory exceed the \(memoryMax >> 20) MiB of causeway.service;"
      + " set a smaller size, or a larger MemoryMax"
  }

  /// The memory of an object with a few fields, its registration in the event loop, and its timer, in bytes.
  private static let smallObject = 512
  /// The maximum size of a peer's certificate chain in bytes: that of the longest TLS handshake message.
  private static let chainBytesMax = 16_384
  /// The bytes of one peer in the answer to a status request. Each pair of discovery info is a string in the snapshot
  /// and a value in the JSON tree. The text of the answer is added.
  private static let statusOfPeer = Limits.infoPairsMax * 128 + 2 * Limits.infoBytesMax + 2_048
  /// The bytes of buffers that exist once: scratch buffers of the node and the links, plaintext buffers for the TLS
  /// client and server role, and a control request.
  private static let sharedBuffers =
    NodeMemory.scratch + LinkScratch.byteCount + 2 * 32_768 + ControlProtocol.requestBytesMax

  private static func line(_ owner: String, _ recordsMax: Int?, _ each: Int?, _ bytes: Int) -> String {
    let first = padded(owner, 46)
    let second = padded(recordsMax.map { "\($0)" } ?? "", 6, isNumber: true)
    let third = padded(each.map { "\($0)" } ?? "", 10, isNumber: true)
    return first + second + third + padded("\((bytes + 1023) / 1024)", 9, isNumber: true)
  }

  private static func padded(_ text: String, _ width: Int, isNumber: Bool = false) -> String {
    let space = String(repeating: " ", count: max(width - text.utf8.count, 0))
    return isNumber ? space + text : text + space
  }
}
