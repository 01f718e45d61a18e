import CMbedTLS
import CSodium
import Channel
import CommandLine
import Configuration
import ControlSocket
import Frame
import Journal
import Primitives
import Reactor
import Relay
import Status
import Text
import Transfer

/// `causeway selftest`
public func commandSelftest(_ words: CommandWords) -> CInt {
  var isBench = false
  var isLedger = false
  CommandParser.parse(
    "causeway selftest", words,
    help:
      "Check this binary on this machine: cryptography, codecs, journal, files, clock. Uses no radio and no daemon.",
    options: [
      CommandOption(name: "bench", key: 0x62, argument: nil, help: "Run the benchmarks as well"),
      CommandOption(
        name: "limits", key: 0x6C, argument: nil, help: "Show the memory that the limits add up to, and exit"),
    ]
  ) { key, _ in
    if key == 0x6C { isLedger = true } else { isBench = true }
    return nil
  }
  if isLedger {
    Output.put(Ledger.text)
    return ExitCode.done
  }
  var failed = 0
  for check in selftestChecks {
    let isGood = check.run()
    if !isGood { failed += 1 }
    var line = TextBuilder()
    line.add(isGood ? "ok    " : "FAIL  ")
    line.add("\(check.name)\n")
    Output.put(line)
  }
  if isBench { selftestBench() }
  let total = selftestChecks.count
  show("", failed == 0 ? "selftest: \(total) checks passed" : "selftest: \(failed) of \(total) checks FAILED")
  return failed == 0 ? ExitCode.done : ExitCode.failed
}

/// One check of the selftest.
struct SelftestCheck {
  let name: StaticString
  let run: () -> Bool
}

private var selftestChecks: [SelftestCheck] {
  [
    SelftestCheck(name: "mbedTLS: SHA-256 (FIPS 180-4 vectors)") { mbedtls_sha256_self_test(0) == 0 },
    SelftestCheck(name: "nettle: AES-GCM for mbedTLS (test cases 4 and 16 of its authors)", run: gcmIsGolden),
    SelftestCheck(name: "nettle: SHA-256 of files (FIPS 180-4 vector)", run: fileHashIsGolden),
    SelftestCheck(name: "mbedTLS: elliptic curves") { mbedtls_ecp_self_test(0) == 0 },
    SelftestCheck(name: "mbedTLS: PSA starts") { psa_crypto_init() == PSA_SUCCESS },
    SelftestCheck(name: "libsodium: SipHash-2-4 of 128 bits (its authors' vector)", run: sipHashIsGolden),
    SelftestCheck(name: "link: TLS handshake, and a sealed frame beside it", run: linkIsSecured),
    SelftestCheck(name: "peers: inner DTLS handshake, sealing, an altered record refused", run: peersAreSealed),
    SelftestCheck(name: "objects: each is freed with its last reference", run: objectsAreCounted),
    SelftestCheck(name: "limits: every field is wide enough, the sum is within the budget", run: limitsHold),
    SelftestCheck(name: "kernel: random numbers are ready", run: randomIsReady),
    SelftestCheck(name: "frame: header as documented, byte by byte", run: frameHeaderIsGolden),
    SelftestCheck(name: "frame: illegal headers are refused", run: frameHeaderRefuses),
    SelftestCheck(name: "control protocol: packets are encoded and decoded", run: controlPacketsSurvive),
    SelftestCheck(name: "journal: records are read back from memory", run: journalIsReadBack),
    SelftestCheck(name: "configuration: values and errors", run: configurationIsParsed),
    SelftestCheck(name: "status: JSON is written and read", run: statusIsReadBack),
    SelftestCheck(name: "transfer: a file from memory to memory, with its root", run: resourceIsTransferred),
    SelftestCheck(name: "reactor: a timer fires, neither early nor late", run: timerFires),
    SelftestCheck(name: "reactor: a socket is served", run: socketIsServed),
  ]
}

private func limitsHold() -> Bool {
  var isWide = true
  Limits.eachWidth { _, greatest, fits in isWide = isWide && greatest <= fits }
  ChannelLimits.eachWidth { _, greatest, fits in isWide = isWide && greatest <= fits }
  return isWide && Ledger.sum(Ledger.entries()) <= Ledger.memoryMax
}

private func randomIsReady() -> Bool {
  var bytes: (UInt64, UInt64) = (0, 0)
  let count = withUnsafeMutableBytes(of: &bytes) { getrandom($0.baseAddress, $0.count, UInt32(GRND_NONBLOCK)) }
  return count == 16 && bytes.0 != bytes.1
}

/// The bytes of the example in docs/protocol.md, “Frame header”.
let goldenHeader: StaticString =
  "812501100200000400010203040506070809101112131415a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b500000007ffff0001"

func bytes(ofHex text: StaticString) -> [UInt8] {
  var bytes: [UInt8] = []
  text.withUTF8Buffer { digits in
    for index in stride(from: 0, to: digits.count, by: 2) {
      bytes.append((ByteString.hexValue(digits[index]) ?? 0) << 4 | (ByteString.hexValue(digits[index + 1]) ?? 0))
    }
  }
  return bytes
}

private func sipHashIsGolden() -> Bool {
  let counted = (0..<56).map(UInt8.init)
  var tag = [UInt8](repeating: 0, count: 16)
  return crypto_shorthash_siphashx24(&tag, counted, UInt64(counted.count), counted) == 0
    && tag == bytes(ofHex: "1938f2cf72d54ee97e94166fa91d2a36")
}

/// Checks AES-GCM with test cases 4 and 16 of McGrew and Viega, “The Galois/Counter Mode of Operation (GCM)”, 2005,
/// appendix B.
private func gcmIsGolden() -> Bool {
  let key = bytes(ofHex: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308")
  let text = bytes(
    ofHex: """
      d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
      1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39
      """)
  let add = bytes(ofHex: "feedfacedeadbeeffeedfacedeadbeefabaddad2")
  let iv = bytes(ofHex: "cafebabefacedbaddecaf888")
  func tag(bits: UInt32) -> [UInt8] {
    var context = mbedtls_gcm_context()
    mbedtls_gcm_init(&context)
    defer { mbedtls_gcm_free(&context) }
    var output = [UInt8](repeating: 0, count: text.count), tag = [UInt8](repeating: 0, count: 16)
    let isSet = mbedtls_gcm_setkey(&context, MBEDTLS_CIPHER_ID_AES, key, bits) == 0
    let isSealed =
      mbedtls_gcm_crypt_and_tag(
        &context, MBEDTLS_GCM_ENCRYPT, text.count, iv, iv.count, add, add.count, text, &output, 16, &tag) == 0
    return isSet && isSealed ? tag : []
  }
  return tag(bits: 128) == bytes(ofHex: "5bc94fbc3221a5db94fae95ae7121a47")
    && tag(bits: 256) == bytes(ofHex: "76fc6ece0f4e1768cddf8853bb2d551b")
}

private func fileHashIsGolden() -> Bool {
  var hash = SHA256()
  for byte in "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8 { hash.update([byte]) }
  return hash.digest().bytes == bytes(ofHex: "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
}

private func frameHeaderIsGolden() -> Bool {
  let golden = bytes(ofHex: goldenHeader)
  guard let header = try? FrameHeader(golden.span.bytes) else { return false }
  guard header.knownType == .sealed, header.flags == FrameHeader.sealed, header.ttl == 16,
    header.priority == .interactive,
    header.payloadByteCount == 4, header.destination == NodeID(high: 0x0001_0203_0405_0607, low: 0x0809_1011_1213_1415),
    header.source == NodeID(high: 0xA0A1_A2A3_A4A5_A6A7, low: 0xA8A9_B0B1_B2B3_B4B5),
    header.identifier == 0x0000_0007_FFFF_0001
  else { return false }
  var written = [UInt8](repeating: 0, count: golden.count)
  written.withUnsafeMutableBytes { memory in
    var output = OutputRawSpan(buffer: memory, initializedCount: 0)
    header.write(to: &output)
    _ = output.finalize(for: memory)
  }
  return written == golden
}

private func frameHeaderRefuses() -> Bool {
  // Each fault is the offset of a byte in the header, its illegal value, and the expected refusal.
  let faults: [(Int, UInt8, FrameError)] = [
    (0, 0x16, .unknownVersion), (3, 0, .ttlZero), (4, 9, .malformed), (5, 1, .malformed), (6, 0xFF, .overLength),
    (7, 0, .zeroLength),
  ]
  for (offset, value, expected) in faults {
    var header = bytes(ofHex: goldenHeader)
    header[offset] = value
    do throws(FrameError) {
      _ = try FrameHeader(header.span.bytes)
      return false
    } catch {
      if error != expected { return false }
    }
  }
  return true
}

private func controlPacketsSurvive() -> Bool {
  let id = NodeID(high: 1, low: 2)
  guard case .probe(7, id)? = try? ControlRequest(ControlRequest.probe(request: 7, id).encoded()),
    case .completed(7, .timedOut)? = try? ControlEvent(ControlEvent.completed(request: 7, .timedOut).encoded())
  else { return false }
  return (try? ControlRequest([0x51, 0])) == nil
}

private func journalIsReadBack() -> Bool {
  let memory = UnsafeMutableRawBufferPointer.allocate(
    byteCount: JournalLayout.fileBytes(capacity: JournalLayout.capacityMin), alignment: 4096)
  defer { memory.deallocate() }
  memory.initializeMemory(as: UInt8.self, repeating: 0)
  let journal = Journal(memory, level: .debug, wallOffset: 1000, boot: MachineBoot(high: 1, low: 2))
  for index in 1...100 { journal.record(.info, .boxStarted, at: Instant(nanoseconds: 5), UInt64(index)) }
  guard let reader = try? JournalReader(UnsafeRawBufferPointer(memory)), let record = reader.record(100) else {
    return false
  }
  return record.a == 100 && record.wallNanoseconds == 1005 && reader.record(36) == nil && reader.oldest == 37
}

private func configurationIsParsed() -> Bool {
  let good = try? Configuration.parse(Array("[ip]\nport = 7\n[bluetooth]\npsm = 0x90\n".utf8), file: "test")
  guard let good, good.ip.port == 7, good.bluetooth.psm == 0x90 else { return false }
  do throws(ConfigurationError) {
    _ = try Configuration.parse(Array("[ip]\nport = x\n".utf8), file: "test")
    return false
  } catch {
    return ByteString(error.text).hasPrefix("test:2: [ip] port: “x” is not accepted")
  }
}

private func statusIsReadBack() -> Bool {
  let snapshot = StatusSnapshot(
    box: BoxStatus(
      name: "box \u{1B}\"", id: NodeID(high: 0xABCD << 48, low: 0), epoch: 1, version: causewayVersion,
      serviceType: "causeway", isRelay: true, uptimeSeconds: 1, residentBytes: residentMemoryBytes()))
  guard let report = try? StatusReport(snapshot.toJSON(withSecrets: true)) else { return false }
  defer { report.release() }
  return ByteString(report.text().bytes[...]).hasPrefix("box ?'  abcd0000")
}

private func timerFires() -> Bool {
  guard let loop = try? EventLoop() else { return false }
  var fired: Instant?
  let timer = Timer(loop) { fired = monotonicNow() }
  let start = monotonicNow()
  timer.set(start + .milliseconds(20))
  while fired == nil && monotonicNow() - start < .seconds(5) { loop.turn(waitMilliseconds: 1000) }
  guard let fired else { return false }
  // The upper limit is generous, because the selftest also runs in an emulator.
  return fired - start >= .milliseconds(20) && fired - start < .seconds(2)
}

private final class Reader: EventSource {
  let descriptor: CInt
  var byte: UInt8 = 0
  init(_ descriptor: CInt) { self.descriptor = descriptor }
  func ready(_ events: UInt32) { _ = read(descriptor, &byte, 1) }
}

private func socketIsServed() -> Bool {
  var pair: (CInt, CInt) = (-1, -1)
  let made = withUnsafeMutableBytes(of: &pair) {
    socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, $0.baseAddress!.assumingMemoryBound(to: CInt.self))
  }
  guard made == 0, let loop = try? EventLoop() else { return false }
  defer {
    close(pair.0)
    close(pair.1)
  }
  let reader = Reader(pair.0)
  guard let registration = try? loop.add(pair.0, .read, .link, reader) else { return false }
  var byte: UInt8 = 0x5A
  _ = write(pair.1, &byte, 1)
  loop.turn(waitMilliseconds: 1000)
  loop.remove(registration)
  return reader.byte == 0x5A
}
