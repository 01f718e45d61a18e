/// All limits of transfers. See docs/resources.md, “Limits”.
public enum TransferLimits {
  public static let version: UInt16 = 1
  /// The maximum size of a record's type and fields, in bytes.
  public static let recordBytesMax = 66_000
  /// The maximum number of file bytes in one record.
  public static let dataBytesMax = 65_536
  /// The maximum number of manifest bytes in one record.
  public static let manifestPieceBytesMax = 32_768
  /// The maximum number of leaf hashes in one record.
  public static let leavesMax = 1_024
  /// The maximum number of files and folders in one offer. The sender chooses their number.
  public static let entriesMax = 65_536
  /// The maximum size of a manifest, in bytes. The receiver stores the manifest in memory.
  public static let manifestBytesMax = 8_388_608
  /// The maximum number of names in a path: the enclosing folders and the file's own name.
  public static let componentsMax = 64
  /// The maximum size of a file name, in bytes of UTF-8. Common file systems have the same limit.
  public static let nameBytesMax = 255
  /// The maximum size of an explanation in a record, in bytes of UTF-8.
  public static let textBytesMax = 200
  /// The maximum sum of the file sizes in an offer: 4 EiB. With this limit no sum of sizes overflows.
  public static let bytesMax: UInt64 = 1 << 62
  /// The time for which an offer waits for an answer, in seconds.
  public static let offerSeconds: UInt32 = 600
  /// The time for which a sender repeats an offer whose stream was refused, in seconds. The receiver may have too many
  /// offers at present.
  public static let turnSeconds: UInt64 = 30
  /// The time within which the offer must arrive on a new stream, in seconds.
  public static let beginSeconds: UInt64 = 30
  /// The maximum number of concurrent offers and transfers of an application. Each needs two of the 32 streams that a
  /// daemon allows an application. Senders share these slots (`TransferSlots`).
  public static let slotsMax = 15
  /// The idle time after which a transfer can lose its slot to another sender, in seconds. The idle time is shorter
  /// than `turnSeconds`, so the other sender is still trying when the idle time has passed.
  public static let stillSeconds: UInt64 = 10
  /// The time for which a transfer waits for the other end after a lost stream, in seconds.
  public static let returnSeconds: UInt64 = 3_600
  /// The number of consecutive attempts without a transferred byte after which a sender gives up.
  public static let attemptsMax = 20
  /// The time within which the last records of a transfer must have been sent, in seconds.
  public static let farewellSeconds: UInt64 = 2
  /// The time for which a receiver that has all files waits for the end of the sender's stream, in seconds.
  public static let verdictSeconds: UInt64 = 10
  /// The number of bytes that a sender reads and hashes in one step. This number is the size of one record, because
  /// other tasks of the thread wait for the complete step.
  public static let readBytesMax = dataBytesMax
  /// The number of leaves (blocks of 1 MiB) that are hashed again when a partial is resumed. A sync to disk follows at
  /// the latest after that many leaves.
  public static let leavesChecked = 16
  /// The maximum size of the journal of a partial, in bytes. A journal of this size is enough for 2 TiB of files, or
  /// for the maximum number of files.
  public static let journalBytesMax = 134_217_728
  /// The largest number that `FileNames.numbered` adds to a name: `foto-999.jpg`.
  public static let numberMax = 999
}

/// A protocol violation by the other end. Every violation ends the transfer.
public enum TransferError: Error, Equatable, Sendable, CaseIterable {
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
