import Identity
import SecureTransport

/// The file `state` of the state directory, in memory and on disk.
public final class TrustStore {
  let directory: StateDirectory
  var state: TrustState
  /// What was wrong with the file; one line. What it held since the last change but one may be lost.
  public private(set) var notice: String?

  public var pins: [Pin] { state.pins }

  private static let file = "state"

  /// Reads the file; a damaged one gives way to the generation before it, and that is told in `notice`.
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
    // The lost generation may have been the one of a start: its epoch must not come again.
    self.state.epochCounter &+= 2
    notice =
      "\(directory.file(Self.file)) is damaged: the one before it is used, the last change of pins or revocations is lost"
  }

  private func tellLost() {
    notice =
      "\(directory.file(Self.file)) is damaged and so is the one before it: pins, revocations and epoch begin anew"
  }

  private var writer: StateWriter?
  /// Something changed since the running write began.
  private var isBehind = false

  /// Write in the background from now on: `save` begins a write and returns, and its errors come from `writeEnded`. Gives
  /// what is readable then (see `StateWriter.descriptor`); nil when there is no background to be had.
  public func writeInBackground() -> CInt? {
    writer = StateWriter(directory, file: Self.file)
    return writer?.descriptor
  }

  /// Whether all that was saved is on disk, or has failed.
  public var isSettled: Bool { writer.map { !$0.isBusy } ?? true }

  /// The running write has ended; what was saved meanwhile is begun.
  public func writeEnded() throws(IdentityError) {
    try writer?.end()
    if isBehind { try save() }
  }

  /// Wait for the running write, and write the rest before this returns.
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

  /// The epoch of this start: a persisted counter in the upper 32 bits, 32 random bits in the lower. It is on disk before
  /// it is returned, so no two starts share a counter whatever the moment of a power cut; the random half tells two copies
  /// of one card apart.
  ///
  /// A disk that is full or read-only does not keep the box from starting; `failure` says why nothing was written. The
  /// counter goes up by two at a start that is written, and the number between belongs to those that are not: they are
  /// later than the last written start and earlier than the next. Among themselves the wall clock orders them: the lower
  /// half counts quarters of a second, and names the next one: the caller waits until it begins before anybody is told of
  /// the epoch, so that no two starts share one. Where that clock stands still over a reboot, a start may come out as older than the
  /// one before it: see below.
  ///
  /// When the state is lost the count starts again. Peers which still remember a larger epoch of this node then hold
  /// the new one for a stale duplicate until what they remember has expired; nothing else depends on the number.
  public func nextEpoch(wallMilliseconds: Int64) throws(IdentityError) -> (epoch: UInt64, failure: IdentityError?) {
    // 2³¹ starts are one a second for 68 years; the count then begins again like that of a lost file.
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

  /// What the lower half of an epoch counts when nothing can be written.
  public static let quarterMilliseconds: Int64 = 250
  /// 1 January 2026: 34 years of quarters of a second fit.
  private static let quartersBegin: Int64 = 4 * 1_767_225_600
}
