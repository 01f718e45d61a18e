import Primitives

/// What happened, as one number: FNV-1a over every event. Two runs of one seed must agree in it.
struct Trace {
  enum Kind: UInt64 {
    case dial = 1
    case open, close, gone, frame, bytes, found, changed, lost, sent, refused, completed, read, fault, start, crash
  }

  private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  private(set) var count = 0
  private let isVerbose: Bool

  init(isVerbose: Bool) { self.isVerbose = isVerbose }

  mutating func add(_ now: Instant, _ kind: Kind, _ machine: Int, _ a: Int = 0, _ b: Int = 0) {
    count += 1
    for word in [
      now.nanoseconds, kind.rawValue, UInt64(machine), UInt64(bitPattern: Int64(a)), UInt64(bitPattern: Int64(b)),
    ] {
      for shift in stride(from: UInt64(0), to: 64, by: 8) {
        hash = (hash ^ (word >> shift & 0xff)) &* 0x0000_0100_0000_01b3
      }
    }
    if isVerbose && kind != .frame && kind != .bytes { note(now, "machine \(machine) \(kind) \(a) \(b)") }
  }

  func note(_ now: Instant, _ text: String) {
    if isVerbose { print("\(now.nanoseconds / 1_000_000 - 1_000_000) ms  \(text)") }
  }
}
