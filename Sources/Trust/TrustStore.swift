import Identity
import SecureTransport

/// The file `state` of the state directory, and its contents in memory.
public final class TrustStore {
  let directory: StateDirectory
  var state: TrustState
  /// A problem with the file, in one line. Its last change may be lost.
  public private(set) var notice: String?

  public var pins: [Pin] { state.pins }

  private static let file = "state"

  /// Reads the file; a damaged one is replaced by the previous generation, which `notice` then says.
  public init(_ directory: StateDirectory) {
    self.directory = directory
    state = TrustState()
    switch directory.readChecked(Self.file, bytesMax: TrustState.bytesMax) {
    case .absent: break
    case .current(let bytes): take(bytes, isPrevious: false)
    case .previous(let bytes): take(bytes, isPrevious: true)
    case .lost: tellLost()
    }
  }

  private func take(_ bytes: [UInt8], isPrevious: Bool) {
    guard let state = TrustState(bytes) else { return tellLost() }
    self.state = state
    if !isPrevious { return }
    // The lost generation may have been written by a start: its epoch must not be used again.
    self.state.epochCounter &+= 2
    notice =
      "\(directory.file(Self.file)) is damaged: the one before it is used, the last change of pins or revocations is lost"
  }

  private func tellLost() {
    notice =
      "\(directory.file(Self.file)) is damaged and so is the one before it: pins, revocations and epoch begin anew"
  }

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
      isBehind = writer.isBusy
      if writer.isBusy || writer.begin(state.encoded()) { return }
    }
    isBehind = false
    try directory.writeChecked(state.encoded(), to: Self.file)
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
