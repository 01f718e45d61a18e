import Frame
import Primitives

/// The greatest memory of a node's sessions, in bytes, for the memory ledger of its host.
public enum SessionMemory {
  /// Memory of an array besides its elements: its header, and the allocator's rounding.
  private static let arrayOverheadBytes = 48
  private static let recordBytes =
    MemoryLayout<MemberRecord>.stride + SessionLimits.farewellBytesMax + arrayOverheadBytes
  /// One session: its table and its pairs.
  public static let session =
    SessionLimits.recordsMax * (recordBytes + MemoryLayout<UInt64>.stride)
    + SessionLimits.originsMax * (MemoryLayout<TableEntries.Origin>.stride + MemoryLayout<SessionMerge>.stride)
    + SessionLimits.membersMax * MemoryLayout<Pair>.stride
    + SessionLimits.recordsMax * MemoryLayout<(MemberAddress, Unread)>.stride
    + SessionLimits.newcomersMax * MemoryLayout<LocalSession.Newcomer>.stride
    + SessionLimits.strangersMax * MemoryLayout<LocalSession.Stranger>.stride
  /// A message in check: its records, which are verified one by one, and its origins and merges.
  public static let inCheck =
    MemoryLayout<TableInCheck>.stride + table
  /// A table, or the entries of one.
  private static let table =
    SessionLimits.recordsMax * (recordBytes + MemoryLayout<UInt64>.stride)
    + SessionLimits.originsMax * (MemoryLayout<TableEntries.Origin>.stride + MemoryLayout<SessionMerge>.stride)
  /// The memory besides while a message of this node to itself is taken: the table that is merged, the entries that it takes,
  /// and the message.
  public static let merging = 2 * table + SessionLimits.tableBytesMax
  /// One invitation, sent or received: sent ones keep the context, received ones the answer with a table.
  public static let invitation =
    MemoryLayout<OutgoingInvitation>.stride + SessionLimits.contextBytesMax + arrayOverheadBytes
  public static let invitationsMax = 2 * SessionLimits.invitationsMax
  /// What a member is told that takes this node for one: a record in each session.
  public static let stale =
    MemoryLayout<StaleMembership>.stride
    + SessionLimits.originsMax
    * (MemoryLayout<TableEntries.Origin>.stride + MemoryLayout<SessionMerge>.stride + recordBytes)
  public static let introduction = MemoryLayout<Introduction>.stride
  public static let gathering = MemoryLayout<Gathering>.stride
  public static let formerMember = MemoryLayout<NodeID>.stride
  public static let verified = MemoryLayout<FixedBytes<32>>.stride
  /// One stream: its turn, and its name. What came is held by whoever has the applications.
  public static let stream =
    MemoryLayout<Stream>.stride + SessionLimits.streamTurnBytes + arrayOverheadBytes
    + SessionLimits.streamNameBytesMax + arrayOverheadBytes
  /// A message on its way to a member, and its result.
  public static let unsentMessage = MemoryLayout<Sessions.Flight>.stride
  /// The services of one node.
  public static let services = Advertisement.bodyBytesMax + arrayOverheadBytes + MemoryLayout<NodeID>.stride
}
