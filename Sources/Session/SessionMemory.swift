import Frame
import Primitives

/// The maximum memory that the sessions of a node use, in bytes. The host enters these values in its memory ledger.
public enum SessionMemory {
  /// The memory of an array beyond its elements: its header, and the allocator's rounding.
  private static let arrayOverheadBytes = 48
  private static let recordBytes =
    MemoryLayout<MemberRecord>.stride + SessionLimits.farewellBytesMax + arrayOverheadBytes
  /// The memory of one session: its table, a peer for each other member, and its lists of addresses.
  public static let session =
    SessionLimits.recordsMax * (recordBytes + MemoryLayout<UInt64>.stride)
    + SessionLimits.originsMax * (MemoryLayout<TableEntries.Origin>.stride + MemoryLayout<SessionMerge>.stride)
    + SessionLimits.membersMax * MemoryLayout<MemberPeer>.stride
    + SessionLimits.recordsMax * MemoryLayout<(MemberAddress, Unread)>.stride
    + SessionLimits.pendingMembersMax * MemoryLayout<LocalSession.PendingMember>.stride
    + SessionLimits.strangersMax * MemoryLayout<LocalSession.Stranger>.stride
  /// The memory of a message whose signatures are being checked: its records, which are verified one by one, and its
  /// origins and merges.
  public static let inCheck =
    MemoryLayout<TableInCheck>.stride + table
  /// A complete table, or the entries of one message.
  private static let table =
    SessionLimits.recordsMax * (recordBytes + MemoryLayout<UInt64>.stride)
    + SessionLimits.originsMax * (MemoryLayout<TableEntries.Origin>.stride + MemoryLayout<SessionMerge>.stride)
  /// The additional memory while this node handles a message to itself: the merged table, the entries that are merged,
  /// and the message.
  public static let merging = 2 * table + SessionLimits.tableBytesMax
  /// The memory of one invitation, sent or received. A sent invitation stores its context; a received invitation needs
  /// less.
  public static let invitation =
    MemoryLayout<OutgoingInvitation>.stride + SessionLimits.contextBytesMax + arrayOverheadBytes
  public static let invitationsMax = 2 * SessionLimits.invitationsMax
  /// The departure notice to a remote member whose table still lists an address of this node. The notice has a record
  /// in each merged session.
  public static let stale =
    MemoryLayout<StaleMembership>.stride
    + SessionLimits.originsMax
    * (MemoryLayout<TableEntries.Origin>.stride + MemoryLayout<SessionMerge>.stride + recordBytes)
  public static let introduction = MemoryLayout<Introduction>.stride
  public static let gathering = AutoJoin.entryBytes
  public static let formerMember = MemoryLayout<NodeID>.stride
  public static let verified = MemoryLayout<FixedBytes<32>>.stride
  /// The memory of one stream: its buffered turn and its name. Received bytes are stored by the host of the
  /// applications.
  public static let stream =
    MemoryLayout<Stream>.stride + SessionLimits.streamTurnBytes + arrayOverheadBytes
    + SessionLimits.streamNameBytesMax + arrayOverheadBytes
  /// A message to one member without a delivery result, and the purpose of that result.
  public static let unsentMessage = UndeliveredMessages.entryBytes
  /// The memory of the services of one node, as advertised by that node.
  public static let services = Advertisement.bodyBytesMax + arrayOverheadBytes + MemoryLayout<NodeID>.stride
}
