import CSystem

/// A fuzz target: its name, which is also the name of its corpus folder, and its function of an input.
private let targets: [(name: String, take: (UnsafeRawBufferPointer) -> Void)] = [
  // Decoders.
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
  // Complete channels and nodes need too much memory to run fast under AddressSanitizer: see run.sh.
  ("payloads", fuzzPayloads),
  ("node", fuzzNode),
  ("network", fuzzNetwork),
]

/// The main function of libFuzzer, for a program that has its own (llvm.org/docs/LibFuzzer.html, “Using libFuzzer as a
/// library”). It returns only when it has nothing more to do.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ take: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

// One binary contains all targets. It runs the target with the name of the called executable.
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
