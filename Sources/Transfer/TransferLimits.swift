/// All limits of transfers. See docs/resources.md, “Limits”.
public enum TransferLimits {
  public static let version: UInt16 = 1
  /// Type and fields of one record, in bytes.
  public static let recordBytesMax = 66_000
  /// Bytes of a file in one record.
  public static let dataBytesMax = 65_536
  /// Bytes of the manifest in one record.
  public static let manifestPieceBytesMax = 32_768
  /// Hashes of leaves in one record.
  public static let leavesMax = 1_024
  /// Files and folders of one offer. The sender chooses their number.
  public static let entriesMax = 65_536
  /// A manifest, in bytes. The receiver holds it in memory.
  public static let manifestBytesMax = 8_388_608
  /// The enclosing folders of a file, and its own name.
  public static let componentsMax = 64
  /// A name, in bytes of UTF-8: the limit of common file systems.
  public static let nameBytesMax = 255
  /// Explanations, in bytes of UTF-8.
  public static let textBytesMax = 200
  /// All bytes of an offer, bounded so that no sum overflows: 4 EiB.
  public static let bytesMax: UInt64 = 1 << 62
  /// The time that an offer waits for its answer, in seconds.
  public static let offerSeconds: UInt32 = 600
  /// The time for which a sender repeats a refused offer, in seconds: the receiver may have too many offers.
  public static let turnSeconds: UInt64 = 30
  /// The timeout for the offer on a new resource stream, in seconds.
  public static let beginSeconds: UInt64 = 30
  /// Offers and transfers of an application at once. Each takes two of the 32 streams that a daemon allows an
  /// application. Senders share the places (`TransferPlaces`).
  public static let placesMax = 15
  /// The idle time after which a transfer gives its place to another sender, in seconds. It is less than `turnSeconds`,
  /// during which that sender tries again.
  public static let stillSeconds: UInt64 = 10
  /// The time for which a transfer waits for the other end after a break, in seconds.
  public static let returnSeconds: UInt64 = 3_600
  /// Consecutive attempts without progress.
  public static let attemptsMax = 20
  /// The timeout for the last records of a transfer, in seconds.
  public static let farewellSeconds: UInt64 = 2
  /// The time for which a receiver with all files waits for the sender's confirmation, in seconds.
  public static let verdictSeconds: UInt64 = 10
  /// Bytes that a sender reads and hashes at once: one record, because a waiting task waits for all of it.
  public static let readBytesMax = dataBytesMax
  /// Leaves that are hashed again when a partial is resumed. At most as many are written before they are synced.
  public static let leavesChecked = 16
  /// A journal of a partial, in bytes: enough for 2 TiB, or for the maximum number of files.
  public static let journalBytesMax = 134_217_728
  /// The largest number in a name: `foto-999.jpg`.
  public static let numberMax = 999
}

/// A protocol violation of the other end. Each ends the transfer.
public enum TransferFault: Error, Equatable, Sendable, CaseIterable {
  case recordLength, recordField, version
  case name, path, entries, manifestLength, manifestDigest, sizes
  case unexpected, file, offset, bytesBeyond, bytesMissing, leaves

  /// A description for people, without a final period.
  public var text: String {
    switch self {
    case .recordLength: "a record has an illegal length"
    case .recordField: "a record has an illegal field, or ends before its last one"
    case .version: "the version of the offer is not supported"
    case .name: "a name is not legal"
    case .path: "a path is duplicate, too deep, or not preceded by its folder"
    case .entries: "the number of files and folders is zero, too large, or not the announced one"
    case .manifestLength: "the list of files is longer than allowed or announced"
    case .manifestDigest: "the list of files does not match the offer"
    case .sizes: "the sizes of the files do not match the offer"
    case .unexpected: "a record arrived in a state that does not allow it"
    case .file: "a record names a file out of turn"
    case .offset: "an offset is beyond the stored data, or inside a block"
    case .bytesBeyond: "more bytes arrived than the file has"
    case .bytesMissing: "a file ended before all its bytes arrived"
    case .leaves: "hashes of blocks contradict each other"
    }
  }
}
