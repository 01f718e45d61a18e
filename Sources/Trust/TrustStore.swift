import Identity
import SecureTransport

/// The file `state` of the state directory, and its contents in memory.
///
/// A change of pins or revocations is written twice, so that the previous generation has it too: if the file is damaged,
/// the one before it lets nobody in who was refused. When neither can be read, nothing says who is refused, and there is
/// no store.
public final class TrustStore {
  let directory: StateDirectory
  var state: TrustState
  /// A problem with the file, in one line. Its last change may be lost.
  public private(set) var notice: String?

  public var pins: [Pin] { state.pins }

  private static let file = "state"

  /// Reads the file; a damaged one is replaced by the previous generation, which `notice` then says. Throws `.stateLost`
  /// when neither can be read.
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
      // The lost generation may have been written by a start: its epoch must not be used again.
      state.epochCounter &+= 2
      written = nil
      notice = """
        \(directory.file(Self.file)) is damaged: the one before it is used, and a change that was not finished is lost
        """
    case .lost: throw .stateLost(path: directory.file(Self.file))
    }
  }

  private func take(_ bytes: [UInt8]) throws(IdentityError) {
    guard let state = TrustState(bytes) else { throw .stateLost(path: directory.file(Self.file)) }
    self.state = state
  }

  /// The newest generation, or the write that runs; nil when the older generation is not known to be whole.
  private var written: TrustState?
  private var writer: StateWriter?
  /// The state has changed since the running write began.
  private var isBehind = false

  /// From now on writes in the background: `save` begins a write and returns, and `writeEnded` throws its errors.
  /// Returns a descriptor that is readable when a write has ended (see `StateWriter.descriptor`); nil when that is not
  /// possible.
  public func writeInBackground() -> CInt? {
    writer = StateWriter(directory, file: Self.file)
    return writer?.descriptor
  }

  /// Whether no write is in progress: everything saved is on disk or has failed.
  public var isSettled: Bool { writer.map { !$0.isBusy } ?? true }

  /// Ends the finished write; begins the next if the state has changed meanwhile.
  public func writeEnded() throws(IdentityError) {
    try writer?.end()
    if isBehind { try save() }
  }

  /// Waits for the running write, and then writes outstanding changes in the foreground.
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
    // The second time for the older generation.
    for _ in 0..<(beginsNewTrust() ? 2 : 1) { try directory.writeChecked(state.encoded(), to: Self.file) }
  }

  /// Whether what is being written decides otherwise about nodes than what was written before.
  private func beginsNewTrust() -> Bool {
    defer { written = state }
    return written.map { !$0.decidesLike(state) } ?? true
  }

  /// The epoch of this start: a persistent counter in the upper 32 bits, 32 random bits in the lower. The counter is on
  /// disk before this returns, so no two starts share it, even after a power cut. The random half distinguishes two
  /// copies of one card.
  ///
  /// A full or read-only disk does not prevent the start; `failure` says why nothing was written. A start that is
  /// written raises the counter by two; the number between is for starts that are not written, so they are later than
  /// the last written start and earlier than the next. The wall clock orders them: the lower half counts quarters of a
  /// second, rounded up, and the caller waits until that quarter begins before it announces the epoch. So no two such
  /// starts share an epoch. If the wall clock stands still over a reboot, a start may look older than the previous one;
  /// see below.
  ///
  /// When the state is lost, the counter starts again. If peers still remember a larger epoch of this node, the node takes
  /// a later one (`epochRaised`).
  public func nextEpoch(wallMilliseconds: Int64) throws(IdentityError) -> (epoch: UInt64, failure: IdentityError?) {
    // 2³¹ starts are one a second for 68 years; the counter then starts again, as after a lost file.
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

  /// The node has taken a later epoch than that of its start. The next start must have a later one still; it is written
  /// with the next `save`.
  func epochRaised(to epoch: UInt64) { state.epochCounter = max(state.epochCounter, UInt32(epoch >> 32)) }

  /// The unit of the lower half of an epoch that could not be written.
  public static let quarterMilliseconds: Int64 = 250
  /// 1 January 2026, 00:00 UTC: enough for 34 years of quarters of a second.
  private static let quartersBegin: Int64 = 4 * 1_767_225_600
}
