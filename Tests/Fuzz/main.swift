import CSystem

/// The fuzz targets. The name of a target is also the name of its corpus folder. `take` runs the target on one input.
private let targets: [(name: String, take: (UnsafeRawBufferPointer) -> Void)] = [
  // Decoders, which run under AddressSanitizer.
  ("frames", fuzzFrames),
  ("streams", fuzzStreams),
  ("advertisements", fuzzAdvertisements),
  ("sessions", fuzzSessions),
  ("local", fuzzLocal),
  ("control", fuzzControl),
  ("configurations", fuzzConfigurations),
  ("journals", fuzzJournals),
  ("management", fuzzManagement),
  ("attributes", fuzzAttributes),
  ("records", fuzzServiceRecords),
  ("setups", fuzzNetworkSetups),
  ("supplicant", fuzzSupplicant),
  ("requests", fuzzRequests),
  ("leases", fuzzLeases),
  ("services", fuzzServices),
  ("identities", fuzzIdentities),
  ("trust", fuzzTrust),
  ("sealing", fuzzSealing),
  ("resources", fuzzResources),
  // Channels and nodes. They need so much memory for each input that they run without AddressSanitizer: see run.sh.
  ("payloads", fuzzPayloads),
  ("node", fuzzNode),
  ("network", fuzzNetwork),
]

/// The main function of libFuzzer, for a program that has a main function of its own. It returns when all runs are
/// done. See llvm.org/docs/LibFuzzer.html, “Using libFuzzer as a library”.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ take: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

// One binary contains all targets. The name under which the binary is called selects the target.
private let name = CommandLine.arguments[0].split(separator: "/").last.map { String($0) } ?? ""
guard let target = targets.first(where: { $0.name == name }) else {
  for target in targets { print(target.name) }
  exit(0)
}
nonisolated(unsafe) private let take = target.take
private var count = CommandLine.argc
private var arguments = CommandLine.unsafeArgv
exit(
  runDriver(&count, &arguments) { bytes, byteCount in
    take(UnsafeRawBufferPointer(start: bytes, count: byteCount))
    return 0
  })
