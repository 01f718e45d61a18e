import CMbedTLS
import CommandLine
import Journal
import Primitives
import Reactor
import Seal

/// Prints the measurements of `causeway selftest --bench`.
func selftestBench() {
  show("bench ", "journal: \(journalNanoseconds()) ns per record")
  show("bench ", "SHA-256: \(sha256MegabytesPerSecond()) MB/s")
  show("bench ", "AES-128-GCM, 16 KiB blocks: \(gcmMegabytesPerSecond()) MB/s")
  sealBench()
}

/// Measures end-to-end sessions: the time of a handshake, the memory of an idle session, and the time to seal and open
/// a record.
private func sealBench() {
  guard let identities = selftestIdentities() else { return show("bench ", "inner session: no identity") }
  let started = processorNanoseconds()
  var sessions: [SelftestSessions] = []
  let before = mallinfo2().uordblks
  let rounds = 10
  for _ in 0..<rounds { if let made = SelftestSessions(identities) { sessions.append(made) } }
  let spent = processorNanoseconds() - started
  guard let first = sessions.first, sessions.count == rounds else { return show("bench ", "inner session: failed") }
  // Divide by the number of ends, two for each session.
  let heap = (mallinfo2().uordblks - before) / (2 * rounds)
  let microseconds = spent / UInt64(rounds) / 1000
  show(
    "bench ",
    "inner handshake: \(microseconds) µs of CPU, both ends together; \(first.datagrams) datagrams, \(first.bytes) bytes"
  )
  show("bench ", "inner session: \(heap) bytes of heap per end")
  for count in [64, 1024, 16_383] {
    let text = [UInt8](repeating: 5, count: count)
    var record = [UInt8](repeating: 0, count: count + SealLimits.overheadBytesMax)
    var plaintext = record
    func seal() -> Int {
      record.withUnsafeMutableBytes { record in text.withUnsafeBytes { first.client.seal($0, into: record) } }
    }
    let sealing = nanosecondsOfBestRound(200) { _ = seal() }
    var opening = UInt64.max
    for _ in 0..<200 {
      let whole = Array(record[..<seal()])
      let start = monotonicNow()
      let isOpened = plaintext.withUnsafeMutableBytes { first.server.open(whole.span.bytes, into: $0) } == count
      if isOpened { opening = min(opening, (monotonicNow() - start).nanoseconds) }
    }
    show("bench ", "sealing \(count) bytes: \(sealing) ns, opening: \(opening) ns")
  }
}

/// The CPU time that this process has used.
private func processorNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

private func nanosecondsOfBestRound(_ rounds: Int, _ body: () -> Void) -> UInt64 {
  var best = UInt64.max
  for _ in 0..<rounds {
    let start = monotonicNow()
    body()
    best = min(best, (monotonicNow() - start).nanoseconds)
  }
  return max(best, 1)
}

private func journalNanoseconds() -> UInt64 {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 4096)
  defer { memory.deallocate() }
  memory.initializeMemory(as: UInt8.self, repeating: 0)
  let filter = UnsafeMutablePointer<RepeatFilter>.allocate(capacity: 1)
  defer { filter.deallocate() }
  filter.initialize(to: RepeatFilter(level: .debug, capacity: memory.count / JournalLayout.recordBytes))
  let journal = Journal(memory, level: .debug, wallOffset: 0, boot: MachineBoot(high: 0, low: 0), filter: filter)
  let count: UInt64 = 1_000_000
  return nanosecondsOfBestRound(5) {
    for index in 0..<count {
      journal.record(
        .info, .frameRefused, at: Instant(nanoseconds: index), index, 1, 2, node: NodeID(high: 3, low: 4))
    }
  } / count
}

private func sha256MegabytesPerSecond() -> UInt64 {
  let block = [UInt8](repeating: 7, count: 1 << 20)
  var digest = [UInt8](repeating: 0, count: 32)
  let nanoseconds = nanosecondsOfBestRound(5) { _ = mbedtls_sha256(block, block.count, &digest, 0) }
  return UInt64(block.count) * 1000 / nanoseconds
}

private func gcmMegabytesPerSecond() -> UInt64 {
  var context = mbedtls_gcm_context()
  mbedtls_gcm_init(&context)
  defer { mbedtls_gcm_free(&context) }
  let key = [UInt8](repeating: 1, count: 16)
  let nonce = [UInt8](repeating: 2, count: 12)
  let block = [UInt8](repeating: 3, count: 16_384)
  var sealed = block
  var tag = nonce
  guard mbedtls_gcm_setkey(&context, MBEDTLS_CIPHER_ID_AES, key, 128) == 0 else { return 0 }
  let nanoseconds = nanosecondsOfBestRound(50) {
    _ = mbedtls_gcm_crypt_and_tag(
      &context, CInt(MBEDTLS_GCM_ENCRYPT), block.count, nonce, nonce.count, nil, 0, block, &sealed, tag.count, &tag)
  }
  return UInt64(block.count) * 1000 / nanoseconds
}
