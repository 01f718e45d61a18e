import Identity
import SecureTransport

/// The file `state` of the state directory and its contents in memory.
///
/// Each write keeps the previous contents of the file as the previous generation. A change of pins or revocations is
/// written twice, so that the previous generation also contains the change. If the file is damaged, the previous
/// generation still refuses every node that was refused. If neither file can be read, the refused nodes are unknown,
/// and opening the store fails.
public final class TrustStore {
  let directory: StateDirectory
  var state: TrustState
  /// One line of text about a fault of the state file, or nil without a fault. After a fault, the last change of the
  /// state file may be lost.
  public private(set) var notice: String?

  public var pins: [Pin] { state.pins }

  private static let file = "state"

  /// Reads the state file. If the file is damaged, its previous generation replaces it and `notice` reports the damage.
  /// Throws `.stateLost` if neither generation can be read.
  public init(_ directory: StateDirectory) throws(IdentityError) {
    self.directory = directory
    state = TrustState()
    written = state
    switch directory.readChecked(Self.file, bytesMax: TrustState.bytesMax) {
    case .absent: break
    case .current(let bytes):
      try take(bytes)
      written = state
    case .previous(let bytes):
      try take(bytes)
      // An earlier start may have written the lost generation, and the epoch of that start must not be used again.
      state.epochCounter &+= 2
      written = nil
      notice = """
        \(directory.file(Self.file)) is damaged: its previous version is used, and an unfinished change is lost
        """
    case .lost: throw .stateLost(path: directory.file(Self.file))
    }
  }

  private func take(_ bytes: [UInt8]) throws(IdentityError) {
    guard let state = TrustState(bytes) else { throw .stateLost(path: directory.file(Self.file)) }
    self.state = state
  }

  /// The state that was written last or is being written. The value is nil if the previous generation may lack a change
  /// of pins or revocations.
  private var written: TrustState?
  private var writer: StateWriter?
  /// Whether the state has changed since the current write began.
  private var isBehind = false

  /// Enables background writes: `save` begins a write and returns, and `writeEnded` throws the errors of the write.
  /// Returns a descriptor that becomes readable when a write has ended (`StateWriter.descriptor`), or nil if background
  /// writes are not possible.
  public func writeInBackground() -> CInt? {
    writer = StateWriter(directory, file: Self.file)
    return writer?.descriptor
  }

  /// Whether no write is in progress. In that case each saved change is on disk, or its write has failed.
  public var isSettled: Bool { writer.map { !$0.isBusy } ?? true }

  /// Completes a finished write. Begins the next write if the state has changed since the finished write began.
  public func writeEnded() throws(IdentityError) {
    try writer?.end()
    if isBehind { try save() }
  }

  /// Waits for the current write, then writes outstanding changes in the foreground.
  public func settle() throws(IdentityError) {
    let writer = writer
    self.writer = nil
    do throws(IdentityError) { try writer?.end() } catch { isBehind = true }
    if isBehind { try save() }
  }

  func save() throws(IdentityError) {
    if let writer {
      isBehind = true
      if writer.isBusy { return }
      if writer.begin(state.encoded()) {
        isBehind = beginsNewTrust()
        return
      }
    }
    isBehind = false
    // The second write updates the previous generation.
    for _ in 0..<(beginsNewTrust() ? 2 : 1) { try directory.writeChecked(state.encoded(), to: Self.file) }
  }

  /// Whether the state that is about to be written has other pins or revocations than the state that was written last.
  private func beginsNewTrust() -> Bool {
    defer { written = state }
    return written.map { !$0.decidesLike(state) } ?? true
  }

  /// Returns the epoch of this start. The upper 32 bits are a persistent counter, and the lower 32 bits are random. The
  /// counter is on disk before the method returns, so two starts never have the same counter, even after a power cut.
  /// The random half distinguishes two boxes that run copies of the same card.
  ///
  /// A full or read-only disk does not prevent the start, and `failure` states why the counter was not written. A start
  /// whose counter is written raises the counter by two. Starts whose counter is not written use the number between two
  /// written counters. So the epochs of unwritten starts are later than that of the last written start and earlier than
  /// that of the next.
  ///
  /// The wall clock orders the epochs of unwritten starts: the lower half is the wall clock's time in quarters of a
  /// second, rounded up. The caller waits until that quarter begins before announcing the epoch, so two unwritten
  /// starts never have the same epoch. If the wall clock does not advance over a reboot, the epoch of a start may be
  /// earlier than that of the previous start. `epochRaised` corrects an epoch that is too early.
  ///
  /// If the state is lost, the counter starts again at zero. If peers still remember a later epoch of this node, the
  /// node adopts an epoch that is later still (`epochRaised`).
  public func nextEpoch(wallMilliseconds: Int64) throws(IdentityError) -> (epoch: UInt64, failure: IdentityError?) {
    // The counter is exhausted after 2³¹ starts, which is one start each second for 68 years. The counter then starts
    // again, as it does after the loss of the file.
    if state.epochCounter > UInt32.max - 3 { state.epochCounter = 0 }
    state.epochCounter += 2
    do throws(IdentityError) {
      try save()
    } catch {
      state.epochCounter -= 1
      let quarters = UInt64(clamping: wallMilliseconds / Self.quarterMilliseconds - Self.quartersBegin + 1)
      return (UInt64(state.epochCounter) << 32 | min(quarters, UInt64(UInt32.max)), error)
    }
    var random: UInt32 = 0
    try withUnsafeMutableBytes(of: &random) { bytes throws(IdentityError) in try secureRandom(into: bytes) }
    return (UInt64(state.epochCounter) << 32 | UInt64(random), nil)
  }

  /// Records that the node has adopted a later epoch than the epoch of its start, so that the epoch of the next start
  /// is even later. The next `save` writes the change.
  func epochRaised(to epoch: UInt64) { state.epochCounter = max(state.epochCounter, UInt32(epoch >> 32)) }

  /// The unit of the lower half of an epoch whose start could not be written, in milliseconds.
  public static let quarterMilliseconds: Int64 = 250
  /// The origin of the lower half of the epoch of an unwritten start: 1 January 2026, 00:00 UTC, in quarters of a
  /// second since 1970. 32 bits of quarters last for 34 years.
  private static let quartersBegin: Int64 = 4 * 1_767_225_600
}
