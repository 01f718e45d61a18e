import Primitives

/// How fast strangers get pins of first use: at a rate for each address, and one for each bearer, since a network may have as
/// many addresses as somebody invents. It decides on pins alone: a key without one is linked all the same, so that nobody is
/// locked out by those who came first.
struct FirstUsePins {
  private var sources = SourceBuckets(TrustLimits.newPinRate)
  /// By `BearerKind.advertised`: both kinds of Bluetooth share one radio.
  private var bearers: [TokenBucket] = []

  init() { bearers = [TokenBucket](repeating: TokenBucket(), count: Int(BearerKind.bluetoothClassic.rawValue) + 1) }

  /// Whether a name may be pinned to a new key now; if so, it is charged.
  mutating func take(_ proof: KeyProof) -> Bool {
    let bearer = Int(proof.bearer.advertised.rawValue)
    guard bearers[bearer].hasToken(TrustLimits.bearerPinRate, now: proof.at) else { return false }
    // Addresses of Bluetooth are free, and all processes of this machine have one: they are charged as a bearer alone.
    let hasAddress = proof.source != 0 && !proof.bearer.isBluetooth
    guard !hasAddress || sources.take(proof.source, now: proof.at) else { return false }
    return bearers[bearer].take(TrustLimits.bearerPinRate, now: proof.at)
  }
}
