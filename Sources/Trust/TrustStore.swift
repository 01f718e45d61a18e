import Identity
import SecureTransport

/// The file `state` of the state directory and its contents in memory.
///
/// A change of pins or revocations is written twice, so that the previous generation contains it too. If the file is
/// damaged, the previous generation then still refuses every node that was refused. If neither can be read, the refused
/// nodes are unknown, and opening the store fails.
public final class TrustStore {
  let directory: StateDirectory
  var state: TrustState
  /// A fault of the file in one line. The last change of the file may be lost.
  public private(set) var notice: String?

  public var pins: [Pin] { state.pins }

  private static let file = "state"

  /// Reads the file. If it is damaged, the previous generation replaces it and `notice` reports that. Throws
  /// `.stateLost` if neither can be read.
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
      // A start may have written the lost generation: its epoch must not be used again.
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

  /// The newest generation, or the one that is being written; nil if the older generation may be incomplete.
  private var written: TrustState?
  private var writer: StateWriter?
  /// Whether the state has changed since the current write began.
  private var isBehind = false

  /// Enables background writes: `save` begins a write and returns, and `writeEnded` throws its errors. Returns a
  /// descriptor that becomes readable when a write has ended (`StateWriter.descriptor`); nil if background writes are
  /// not possible.
  public func writeInBackground() -> CInt? {
    writer = StateWriter(directory, file: Self.file)
    return writer?.descriptor
  }

  /// Whether no write is in progress: everything saved is on disk, or its write has failed.
  public var isSettled: Bool { writer.map { !$0.isBusy } ?? true }

  /// Completes a finished write, and begins the next if the state has changed meanwhile.
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
    // The second write updates the older generation.
    for _ in 0..<(beginsNewTrust() ? 2 : 1) { try directory.writeChecked(state.encoded(), to: Self.file) }
  }

  /// Whether the state to write decides differently about nodes than the last written state.
  private func beginsNewTrust() -> Bool {
    defer { written = state }
    return written.map { !$0.decidesLike(state) } ?? true
  }

  /// The epoch of this start: a persistent counter in the upper 32 bits, 32 random bits in the lower. The counter is on
  /// disk before this returns, so no two starts share it, even after a power cut. The random half distinguishes two
  /// copies of one card.
  ///
  /// A full or read-only disk does not prevent the start; `failure` states why nothing was written. A written start
  /// raises the counter by two. Unwritten starts use the number between, so they are later than the last written start
  /// and earlier than the next. The wall clock orders them: the lower half counts quarters of a second, rounded up. The
  /// caller waits until that quarter begins before it announces the epoch, so no two such starts share one. If the wall
  /// clock does not advance over a reboot, a start may look older than the previous one; `epochRaised` corrects that.
  ///
  /// If the state is lost, the counter starts again. If peers still remember a larger epoch of this node, the node
  /// adopts a later one (`epochRaised`).
  public func nextEpoch(wallMilliseconds: Int64) throws(IdentityError) -> (epoch: UInt64, failure: IdentityError?) {
    // 2³¹ starts are one per second for 68 years. Then the counter starts again, as after a lost file.
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

  /// Notes that the node has adopted a later epoch than that of its start. The next start must have a later one still.
  /// The next `save` writes it.
  func epochRaised(to epoch: UInt64) { state.epochCounter = max(state.epochCounter, UInt32(epoch >> 32)) }

  /// The unit of the lower half of an unwritten start's epoch, in milliseconds.
  public static let quarterMilliseconds: Int64 = 250
  /// 1 January 2026, 00:00 UTC, in quarters of a second. 32 bits of quarters last for 34 years.
  private static let quartersBegin: Int64 = 4 * 1_767_225_600
}
