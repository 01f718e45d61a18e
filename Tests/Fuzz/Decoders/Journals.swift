import CSystem
import FuzzSupport
import Journal
import Log
import Primitives

/// Damages a journal file. The first byte of the input states how much of the file remains. Each further 10 bytes are a
/// position and the bytes to write there. A reader must show or refuse the journal, and a starting daemon must be able
/// to continue it.
func fuzzJournals(_ input: UnsafeRawBufferPointer) {
  var script = Script(input)
  let left = script.u8()
  file.restore()
  while !script.isOver {
    let offset = Int(script.u16()) % (Sample.byteCount - 7)
    let damage = script.bytes(8)
    file.bytes[offset..<(offset + damage.count)].copyBytes(from: damage)
  }
  ftruncate(file.descriptor, off_t(left == 0 ? Sample.byteCount : Sample.byteCount * Int(left) / 256))
  if let journal = try? JournalMapping(path: file.path) { show(journal) }
  ftruncate(file.descriptor, off_t(Sample.byteCount))
  goOn()
}

nonisolated(unsafe) private let file = Sample()

private func show(_ journal: JournalMapping) {
  let sequences = LogQuery().sequences(in: journal)
  expect(sequences.count <= Sample.capacity, "more records than there is room for")
  for sequence in sequences {
    guard let line = EventFormatter.line(sequence, of: journal) else { continue }
    expect(line.bytes.last == 0x0A && line.bytes.count(where: { $0 == 0x0A }) == 1, "a record of several lines")
  }
  var latest = LogQuery()
  latest.since = .boot
  latest.countMax = 3
  expect(latest.sequences(in: journal).count <= 3, "more records than were wanted")
}

/// Continues the journal as a starting daemon does.
private func goOn() {
  let journal = Journal(file.bytes, level: .info, wallOffset: 5, boot: MachineBoot(high: 1, low: 2))
  for count in 1...3 { journal.record(.notice, .boxStarted, at: .zero + .seconds(9), 1, UInt64(count)) }
  guard let reader = try? JournalReader(UnsafeRawBufferPointer(file.bytes)) else { fatalError("no journal any more") }
  expect(reader.record(reader.newest)?.b == 3, "what was written is not there")
}

/// A journal in an unnamed file. The number of records written is one and a half times the capacity of the journal.
private final class Sample {
  static let capacity = JournalLayout.capacityMin
  static let byteCount = JournalLayout.fileBytes(capacity: capacity)

  let descriptor: CInt
  let path: String
  let bytes: UnsafeMutableRawBufferPointer
  private let whole: [UInt8]

  init() {
    descriptor = memfd_create("journal", 0)
    path = "/proc/self/fd/\(descriptor)"
    ftruncate(descriptor, off_t(Self.byteCount))
    let mapped = mmap(nil, Self.byteCount, PROT_READ | PROT_WRITE, CInt(MAP_SHARED), descriptor, 0)
    bytes = UnsafeMutableRawBufferPointer(start: mapped, count: Self.byteCount)
    let boot = MachineBoot(high: 3, low: 4)
    let journal = Journal(bytes, level: .debug, wallOffset: 1_700_000_000_000_000_000, boot: boot)
    for count in 0..<UInt64(Self.capacity * 3 / 2) {
      // The records contain every known event and some unknown events.
      let event = Event(rawValue: UInt16(count)) ?? .boxStarted
      journal.record(.notice, event, at: .zero + .seconds(count), link: UInt8(count % 4), count, count << 32, 7)
    }
    whole = Array(bytes)
  }

  func restore() { bytes.copyBytes(from: whole) }
}
