import Primitives

/// Limits the rate at which trust on first use pins new keys, and new names of pinned keys. Each address has a rate,
/// and each bearer has a rate, because a machine can invent any number of addresses. The limits affect only pins. A key
/// without a pin still gets its link, so earlier peers cannot lock out later peers.
struct FirstUsePins {
  private var sources = SourceBuckets(TrustLimits.newPinRate)
  /// The token bucket of each bearer, indexed by the raw value of `BearerKind.advertised`. LE and classic Bluetooth
  /// have the same bucket, because both share a radio.
  private var bearers: [TokenBucket] = []

  init() { bearers = [TokenBucket](repeating: TokenBucket(), count: Int(BearerKind.bluetoothClassic.rawValue) + 1) }

  /// Returns true and charges one pin if a name may be pinned to a key now.
  mutating func take(_ proof: KeyProof) -> Bool {
    let bearer = Int(proof.bearer.advertised.rawValue)
    guard bearers[bearer].hasToken(TrustLimits.bearerPinRate, now: proof.at) else { return false }
    // Anyone can invent Bluetooth addresses, and all processes of this machine share one address. So these two kinds of
    // peers are charged only to the bearer.
    let hasAddress = proof.source != 0 && !proof.bearer.isBluetooth
    guard !hasAddress || sources.take(proof.source, now: proof.at) else { return false }
    return bearers[bearer].take(TrustLimits.bearerPinRate, now: proof.at)
  }
}
