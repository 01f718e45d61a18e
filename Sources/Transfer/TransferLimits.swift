/// All limits of transfers. docs/resources.md, “Limits”.
public enum TransferLimits {
  public static let version: UInt16 = 1
  /// Type and fields of one record.
  public static let recordBytesMax = 66_000
  /// Bytes of a file in one record.
  public static let dataBytesMax = 65_536
  /// Bytes of the manifest in one record.
  public static let manifestPieceBytesMax = 32_768
  /// Hashes of leaves in one record.
  public static let leavesMax = 1_024
  /// Files and folders of one offer. A sender fills it.
  public static let entriesMax = 65_536
  /// A manifest, which the receiver holds in memory.
  public static let manifestBytesMax = 8_388_608
  /// Folders around a file, and its own name.
  public static let componentsMax = 64
  /// A name, in bytes of UTF-8: what file systems allow.
  public static let nameBytesMax = 255
  /// Explanations, in bytes of UTF-8.
  public static let textBytesMax = 200
  /// All bytes of an offer, so that no sum overflows: 4 EiB.
  public static let bytesMax: UInt64 = 1 << 62
  /// An offer waits so long for its answer, in seconds.
  public static let offerSeconds: UInt32 = 600
  /// A sender whose stream is refused tries again for so long, in seconds: the receiver may have too many offers.
  public static let turnSeconds: UInt64 = 30
  /// A stream that begins as a resource has said what it offers by then, in seconds.
  public static let beginSeconds: UInt64 = 30
  /// Offers and transfers of an application at once: each takes two of the 32 streams that a daemon has for it. Senders fill
  /// it and share it (`TransferPlaces`).
  public static let placesMax = 15
  /// One of which nothing has come for so long gives its place to another sender's, in seconds: less than `turnSeconds`, in
  /// which that sender tries again.
  public static let stillSeconds: UInt64 = 10
  /// After a break the other end is waited for, in seconds.
  public static let returnSeconds: UInt64 = 3_600
  /// Attempts without a byte more, one after the other.
  public static let attemptsMax = 20
  /// The last word of a transfer may take so long, in seconds.
  public static let farewellSeconds: UInt64 = 2
  /// Who received everything waits so long for the sender to have heard it, in seconds.
  public static let verdictSeconds: UInt64 = 10
  /// What a sender reads of a file at once, and hashes: one record, because whoever waits for it waits for all of it.
  public static let readBytesMax = dataBytesMax
  /// Leaves that are hashed again when a partial is found, and at most so many are written before they are synced.
  public static let leavesChecked = 16
  /// A journal of a partial: of 2 TiB, or as many files as there may be.
  public static let journalBytesMax = 134_217_728
  /// Names are tried up to `foto-999.jpg`.
  public static let numberMax = 999
}

/// What is wrong with words of the other end. Each ends the transfer.
public enum TransferFault: Error, Equatable, Sendable, CaseIterable {
  case recordLength, recordField, version
  case name, path, entries, manifestLength, manifestDigest, sizes
  case unexpected, file, offset, bytesBeyond, bytesMissing, leaves

  /// For people, without the end of a sentence.
  public var text: String {
    switch self {
    case .recordLength: "a record has an illegal length"
    case .recordField: "a record has an illegal field, or ends before its last one"
    case .version: "the version of the offer is not known here"
    case .name: "a name is not legal"
    case .path: "a path is there twice, too deep, or without its folder before it"
    case .entries: "there are more files and folders than an offer may have, or none, or not as many as it says"
    case .manifestLength: "the list of files is longer than it may be, or than the offer says"
    case .manifestDigest: "the list of files is not the one that was offered"
    case .sizes: "the sizes of the files are not what the offer says"
    case .unexpected: "a record came when it is not allowed"
    case .file: "a record names a file that is not its turn"
    case .offset: "an offset lies beyond what is there, or within a block"
    case .bytesBeyond: "more bytes came than the file has"
    case .bytesMissing: "a file ended before all its bytes had come"
    case .leaves: "hashes of blocks contradict each other"
    }
  }
}
