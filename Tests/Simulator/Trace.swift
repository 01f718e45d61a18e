import Primitives

/// A hash over every event of a run. Two runs of one seed must have the same hash.
public struct Trace {
  enum Kind: UInt64 {
    case dial = 1
    case open, close, gone, frame, bytes, found, changed, lost, sent, refused, completed, read, fault, start, crash,
      corrupt, thaw, asked, decided
  }

  public private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  public private(set) var count = 0
  private let isVerbose: Bool

  init(isVerbose: Bool) { self.isVerbose = isVerbose }

  mutating func add(_ now: Instant, _ kind: Kind, _ machine: Int, _ a: Int = 0, _ b: Int = 0) {
    count += 1
    mix(now.nanoseconds)
    mix(kind.rawValue << 32 | UInt64(machine))
    mix(UInt64(bitPattern: Int64(a)))
    mix(UInt64(bitPattern: Int64(b)))
    if isVerbose && kind != .frame && kind != .bytes { note(now, "machine \(machine) \(kind) \(a) \(b)") }
  }

  private mutating func mix(_ word: UInt64) {
    hash = (hash ^ word) &* 0x9e37_79b9_7f4a_7c15
    hash ^= hash >> 29
  }

  func note(_ now: Instant, _ text: String) {
    if isVerbose { print("\(now.nanoseconds / 1_000_000 - 1_000_000) ms  \(text)") }
  }
}
