extension NodeIdentity {
  /// The epoch of this start: a persisted counter in the upper 32 bits, 32 random bits in the lower.
  /// It is on disk before it is returned, so no two starts share a counter whatever the moment of a power cut;
  /// the random half tells two copies of one card apart.
  ///
  /// When `epoch` is missing or does not hold a counter (card restored, file torn by a broken file system) the
  /// count starts again at 1. Peers which still remember a larger epoch of this node then hold the new one for
  /// a stale duplicate until what they remember has expired; nothing else depends on the number.
  public static func nextEpoch(directory: String) throws(IdentityError) -> UInt64 {
    let directory = try StateDirectory(directory)
    let stored = try directory.read("epoch", bytesMax: 64)
    let counter = stored.flatMap(parseCounter) ?? 0
    // 2³² starts are one a second for 136 years; the count then begins again like that of a lost file.
    let next = counter == UInt32.max ? 1 : counter + 1
    try directory.write(Array("\(next)\n".utf8), to: "epoch", mode: 0o600)

    var random: UInt32 = 0
    try withUnsafeMutableBytes(of: &random) { bytes throws(IdentityError) in try secureRandom(into: bytes) }
    return UInt64(next) << 32 | UInt64(random)
  }

  /// One to ten decimal digits and a newline, or nil. The newline shows that the number is whole.
  private static func parseCounter(_ bytes: [UInt8]) -> UInt32? {
    guard bytes.count >= 2, bytes.count <= 11, bytes.last == 0x0A else { return nil }
    var value: UInt64 = 0
    for byte in bytes.dropLast() {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      value = value * 10 + UInt64(byte - 0x30)
    }
    return UInt32(exactly: value)
  }
}
