import Primitives

/// Limits the rate at which trust on first use pins new keys: one rate per address and one per bearer, because a
/// network may have any number of invented addresses. The limits affect pins only. A key without a pin still gets its
/// link, so earlier arrivals cannot lock anyone out.
struct FirstUsePins {
  private var sources = SourceBuckets(TrustLimits.newPinRate)
  /// Indexed by `BearerKind.advertised`: both kinds of Bluetooth share one radio.
  private var bearers: [TokenBucket] = []

  init() { bearers = [TokenBucket](repeating: TokenBucket(), count: Int(BearerKind.bluetoothClassic.rawValue) + 1) }

  /// Charges one pin and returns true if a name may be pinned to a new key now.
  mutating func take(_ proof: KeyProof) -> Bool {
    let bearer = Int(proof.bearer.advertised.rawValue)
    guard bearers[bearer].hasToken(TrustLimits.bearerPinRate, now: proof.at) else { return false }
    // Bluetooth addresses are free, and all processes of this machine share one address. Both are charged to the bearer
    // only.
    let hasAddress = proof.source != 0 && !proof.bearer.isBluetooth
    guard !hasAddress || sources.take(proof.source, now: proof.at) else { return false }
    return bearers[bearer].take(TrustLimits.bearerPinRate, now: proof.at)
  }
}
