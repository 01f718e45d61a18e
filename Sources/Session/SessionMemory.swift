import Frame
import Primitives

/// The maximum memory of a node's sessions, in bytes, for the memory ledger of its host.
public enum SessionMemory {
  /// The memory of an array beyond its elements: its header, and the allocator's rounding.
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
  /// The additional memory while a message of this node to itself is handled: the merged table, the entries that it
  /// adopts, and the message.
  public static let merging = 2 * table + SessionLimits.tableBytesMax
  /// One invitation, sent or received. A sent one keeps the context, a received one the answer with a table.
  public static let invitation =
    MemoryLayout<OutgoingInvitation>.stride + SessionLimits.contextBytesMax + arrayOverheadBytes
  public static let invitationsMax = 2 * SessionLimits.invitationsMax
  /// The answer to a remote member that counts this node as a member: a record in each session.
  public static let stale =
    MemoryLayout<StaleMembership>.stride
    + SessionLimits.originsMax
    * (MemoryLayout<TableEntries.Origin>.stride + MemoryLayout<SessionMerge>.stride + recordBytes)
  public static let introduction = MemoryLayout<Introduction>.stride
  public static let gathering = MemoryLayout<Gathering>.stride
  public static let formerMember = MemoryLayout<NodeID>.stride
  public static let verified = MemoryLayout<FixedBytes<32>>.stride
  /// One stream: its buffered turn, and its name. The host of the applications holds received bytes.
  public static let stream =
    MemoryLayout<Stream>.stride + SessionLimits.streamTurnBytes + arrayOverheadBytes
    + SessionLimits.streamNameBytesMax + arrayOverheadBytes
  /// A message in flight to a member, and its result.
  public static let unsentMessage = MemoryLayout<Sessions.Flight>.stride
  /// The services of one node.
  public static let services = Advertisement.bodyBytesMax + arrayOverheadBytes + MemoryLayout<NodeID>.stride
}
