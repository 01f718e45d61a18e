/// SHA-256 (FIPS 180-4, sections 4.1.2, 5 and 6.2). A copy can be updated independently of the original.
public struct SHA256: Sendable {
  private var state: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32) = (
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19
  )
  /// The bytes that do not fill a block of 64 bytes yet.
  private var pending: [UInt8] = []
  /// The number of bytes hashed so far. The standard defines no digest for 2^61 bytes or more, and no input here is
  /// that long.
  public private(set) var byteCount: UInt64 = 0

  public init() {}

  public mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

  public mutating func update(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { update($0) } }

  /// Adds bytes. The pointer is used only during the call.
  public mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress else { return }
    byteCount &+= UInt64(bytes.count)
    var start = 0
    if !pending.isEmpty {
      start = min(64 - pending.count, bytes.count)
      pending.append(contentsOf: bytes[..<start])
      guard pending.count == 64 else { return }
      pending.withUnsafeBytes { Self.compress(&state, $0.baseAddress!, blocks: 1) }
      pending.removeAll(keepingCapacity: true)
    }
    let blocks = (bytes.count - start) / 64
    if blocks > 0 { Self.compress(&state, base + start, blocks: blocks) }
    pending.append(contentsOf: bytes[(start + 64 * blocks)...])
  }

  /// The digest of all bytes so far. After this call `update` can add more bytes.
  public func digest() -> Digest {
    var rest = self
    // The padding of section 5.1.1: a one bit, zeros, and the length in bits.
    var padding: [UInt8] = [0x80]
    while (pending.count + padding.count) % 64 != 56 { padding.append(0) }
    let bits = byteCount &* 8
    for index in 0..<8 { padding.append(UInt8(truncatingIfNeeded: bits &>> UInt64(56 - 8 * index))) }
    rest.update(padding)
    let s = rest.state
    func pair(_ a: UInt32, _ b: UInt32) -> UInt64 { UInt64(a) &<< 32 | UInt64(b) }
    return Digest(pair(s.0, s.1), pair(s.2, s.3), pair(s.4, s.5), pair(s.6, s.7))
  }

  public static func digest(_ bytes: [UInt8]) -> Digest {
    var hash = SHA256()
    hash.update(bytes)
    return hash.digest()
  }

  // The computation of section 6.2.2, with its 64 steps unrolled. The standard moves the values of the eight variables
  // after each step. In this implementation, each step uses the variables in another order instead of moving their
  // values.
  private static func compress(
    _ state: inout (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32), _ bytes: UnsafeRawPointer,
    blocks: Int
  ) {
    var block = bytes
    for _ in 0..<blocks {
      compress(&state, block)
      block += 64
    }
  }

  private static func compress(
    _ state: inout (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32), _ block: UnsafeRawPointer
  ) {
    var (a, b, c, d, e, f, g, h) = state
    var w0 = word(block, 0)
    var w1 = word(block, 1)
    var w2 = word(block, 2)
    var w3 = word(block, 3)
    var w4 = word(block, 4)
    var w5 = word(block, 5)
    var w6 = word(block, 6)
    var w7 = word(block, 7)
    var w8 = word(block, 8)
    var w9 = word(block, 9)
    var w10 = word(block, 10)
    var w11 = word(block, 11)
    var w12 = word(block, 12)
    var w13 = word(block, 13)
    var w14 = word(block, 14)
    var w15 = word(block, 15)
    step(a, b, c, &d, e, f, g, &h, 0x428a_2f98 &+ w0)
    step(h, a, b, &c, d, e, f, &g, 0x7137_4491 &+ w1)
    step(g, h, a, &b, c, d, e, &f, 0xb5c0_fbcf &+ w2)
    step(f, g, h, &a, b, c, d, &e, 0xe9b5_dba5 &+ w3)
    step(e, f, g, &h, a, b, c, &d, 0x3956_c25b &+ w4)
    step(d, e, f, &g, h, a, b, &c, 0x59f1_11f1 &+ w5)
    step(c, d, e, &f, g, h, a, &b, 0x923f_82a4 &+ w6)
    step(b, c, d, &e, f, g, h, &a, 0xab1c_5ed5 &+ w7)
    step(a, b, c, &d, e, f, g, &h, 0xd807_aa98 &+ w8)
    step(h, a, b, &c, d, e, f, &g, 0x1283_5b01 &+ w9)
    step(g, h, a, &b, c, d, e, &f, 0x2431_85be &+ w10)
    step(f, g, h, &a, b, c, d, &e, 0x550c_7dc3 &+ w11)
    step(e, f, g, &h, a, b, c, &d, 0x72be_5d74 &+ w12)
    step(d, e, f, &g, h, a, b, &c, 0x80de_b1fe &+ w13)
    step(c, d, e, &f, g, h, a, &b, 0x9bdc_06a7 &+ w14)
    step(b, c, d, &e, f, g, h, &a, 0xc19b_f174 &+ w15)
    expand(&w0, w1, w9, w14)
    step(a, b, c, &d, e, f, g, &h, 0xe49b_69c1 &+ w0)
    expand(&w1, w2, w10, w15)
    step(h, a, b, &c, d, e, f, &g, 0xefbe_4786 &+ w1)
    expand(&w2, w3, w11, w0)
    step(g, h, a, &b, c, d, e, &f, 0x0fc1_9dc6 &+ w2)
    expand(&w3, w4, w12, w1)
    step(f, g, h, &a, b, c, d, &e, 0x240c_a1cc &+ w3)
    expand(&w4, w5, w13, w2)
    step(e, f, g, &h, a, b, c, &d, 0x2de9_2c6f &+ w4)
    expand(&w5, w6, w14, w3)
    step(d, e, f, &g, h, a, b, &c, 0x4a74_84aa &+ w5)
    expand(&w6, w7, w15, w4)
    step(c, d, e, &f, g, h, a, &b, 0x5cb0_a9dc &+ w6)
    expand(&w7, w8, w0, w5)
    step(b, c, d, &e, f, g, h, &a, 0x76f9_88da &+ w7)
    expand(&w8, w9, w1, w6)
    step(a, b, c, &d, e, f, g, &h, 0x983e_5152 &+ w8)
    expand(&w9, w10, w2, w7)
    step(h, a, b, &c, d, e, f, &g, 0xa831_c66d &+ w9)
    expand(&w10, w11, w3, w8)
    step(g, h, a, &b, c, d, e, &f, 0xb003_27c8 &+ w10)
    expand(&w11, w12, w4, w9)
    step(f, g, h, &a, b, c, d, &e, 0xbf59_7fc7 &+ w11)
    expand(&w12, w13, w5, w10)
    step(e, f, g, &h, a, b, c, &d, 0xc6e0_0bf3 &+ w12)
    expand(&w13, w14, w6, w11)
    step(d, e, f, &g, h, a, b, &c, 0xd5a7_9147 &+ w13)
    expand(&w14, w15, w7, w12)
    step(c, d, e, &f, g, h, a, &b, 0x06ca_6351 &+ w14)
    expand(&w15, w0, w8, w13)
    step(b, c, d, &e, f, g, h, &a, 0x1429_2967 &+ w15)
    expand(&w0, w1, w9, w14)
    step(a, b, c, &d, e, f, g, &h, 0x27b7_0a85 &+ w0)
    expand(&w1, w2, w10, w15)
    step(h, a, b, &c, d, e, f, &g, 0x2e1b_2138 &+ w1)
    expand(&w2, w3, w11, w0)
    step(g, h, a, &b, c, d, e, &f, 0x4d2c_6dfc &+ w2)
    expand(&w3, w4, w12, w1)
    step(f, g, h, &a, b, c, d, &e, 0x5338_0d13 &+ w3)
    expand(&w4, w5, w13, w2)
    step(e, f, g, &h, a, b, c, &d, 0x650a_7354 &+ w4)
    expand(&w5, w6, w14, w3)
    step(d, e, f, &g, h, a, b, &c, 0x766a_0abb &+ w5)
    expand(&w6, w7, w15, w4)
    step(c, d, e, &f, g, h, a, &b, 0x81c2_c92e &+ w6)
    expand(&w7, w8, w0, w5)
    step(b, c, d, &e, f, g, h, &a, 0x9272_2c85 &+ w7)
    expand(&w8, w9, w1, w6)
    step(a, b, c, &d, e, f, g, &h, 0xa2bf_e8a1 &+ w8)
    expand(&w9, w10, w2, w7)
    step(h, a, b, &c, d, e, f, &g, 0xa81a_664b &+ w9)
    expand(&w10, w11, w3, w8)
    step(g, h, a, &b, c, d, e, &f, 0xc24b_8b70 &+ w10)
    expand(&w11, w12, w4, w9)
    step(f, g, h, &a, b, c, d, &e, 0xc76c_51a3 &+ w11)
    expand(&w12, w13, w5, w10)
    step(e, f, g, &h, a, b, c, &d, 0xd192_e819 &+ w12)
    expand(&w13, w14, w6, w11)
    step(d, e, f, &g, h, a, b, &c, 0xd699_0624 &+ w13)
    expand(&w14, w15, w7, w12)
    step(c, d, e, &f, g, h, a, &b, 0xf40e_3585 &+ w14)
    expand(&w15, w0, w8, w13)
    step(b, c, d, &e, f, g, h, &a, 0x106a_a070 &+ w15)
    expand(&w0, w1, w9, w14)
    step(a, b, c, &d, e, f, g, &h, 0x19a4_c116 &+ w0)
    expand(&w1, w2, w10, w15)
    step(h, a, b, &c, d, e, f, &g, 0x1e37_6c08 &+ w1)
    expand(&w2, w3, w11, w0)
    step(g, h, a, &b, c, d, e, &f, 0x2748_774c &+ w2)
    expand(&w3, w4, w12, w1)
    step(f, g, h, &a, b, c, d, &e, 0x34b0_bcb5 &+ w3)
    expand(&w4, w5, w13, w2)
    step(e, f, g, &h, a, b, c, &d, 0x391c_0cb3 &+ w4)
    expand(&w5, w6, w14, w3)
    step(d, e, f, &g, h, a, b, &c, 0x4ed8_aa4a &+ w5)
    expand(&w6, w7, w15, w4)
    step(c, d, e, &f, g, h, a, &b, 0x5b9c_ca4f &+ w6)
    expand(&w7, w8, w0, w5)
    step(b, c, d, &e, f, g, h, &a, 0x682e_6ff3 &+ w7)
    expand(&w8, w9, w1, w6)
    step(a, b, c, &d, e, f, g, &h, 0x748f_82ee &+ w8)
    expand(&w9, w10, w2, w7)
    step(h, a, b, &c, d, e, f, &g, 0x78a5_636f &+ w9)
    expand(&w10, w11, w3, w8)
    step(g, h, a, &b, c, d, e, &f, 0x84c8_7814 &+ w10)
    expand(&w11, w12, w4, w9)
    step(f, g, h, &a, b, c, d, &e, 0x8cc7_0208 &+ w11)
    expand(&w12, w13, w5, w10)
    step(e, f, g, &h, a, b, c, &d, 0x90be_fffa &+ w12)
    expand(&w13, w14, w6, w11)
    step(d, e, f, &g, h, a, b, &c, 0xa450_6ceb &+ w13)
    expand(&w14, w15, w7, w12)
    step(c, d, e, &f, g, h, a, &b, 0xbef9_a3f7 &+ w14)
    expand(&w15, w0, w8, w13)
    step(b, c, d, &e, f, g, h, &a, 0xc671_78f2 &+ w15)
    state.0 &+= a
    state.1 &+= b
    state.2 &+= c
    state.3 &+= d
    state.4 &+= e
    state.5 &+= f
    state.6 &+= g
    state.7 &+= h
  }

  @inline(__always)
  private static func word(_ block: UnsafeRawPointer, _ index: Int) -> UInt32 {
    UInt32(bigEndian: block.loadUnaligned(fromByteOffset: 4 &* index, as: UInt32.self))
  }

  @inline(__always)
  private static func step(
    _ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: inout UInt32, _ e: UInt32, _ f: UInt32, _ g: UInt32, _ h: inout UInt32,
    _ word: UInt32
  ) {
    let sum1 = (e &>> 6 | e &<< 26) ^ (e &>> 11 | e &<< 21) ^ (e &>> 25 | e &<< 7)
    let choice = g ^ (e & (f ^ g))
    let sum0 = (a &>> 2 | a &<< 30) ^ (a &>> 13 | a &<< 19) ^ (a &>> 22 | a &<< 10)
    let majority = (a & b) | (c & (a | b))
    let first: UInt32 = h &+ sum1 &+ choice &+ word
    d = d &+ first
    h = first &+ sum0 &+ majority
  }

  /// Computes the word W(t) of the message schedule, which replaces W(t-16) in `word`.
  @inline(__always)
  private static func expand(_ word: inout UInt32, _ after15: UInt32, _ after7: UInt32, _ after2: UInt32) {
    let sum0 = (after15 &>> 7 | after15 &<< 25) ^ (after15 &>> 18 | after15 &<< 14) ^ (after15 &>> 3)
    let sum1 = (after2 &>> 17 | after2 &<< 15) ^ (after2 &>> 19 | after2 &<< 13) ^ (after2 &>> 10)
    word = word &+ sum0 &+ after7 &+ sum1
  }
}
