import CSystem

/// A fuzz target: its name, which is also the name of its corpus folder, and the function that runs it on one input.
public typealias FuzzTarget = (name: String, take: (UnsafeRawBufferPointer) -> Void)

/// The main function of libFuzzer, for a program that has a main function of its own. It returns when all runs are
/// done. See llvm.org/docs/LibFuzzer.html, “Using libFuzzer as a library”.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ take: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

nonisolated(unsafe) private var take: (UnsafeRawBufferPointer) -> Void = { _ in }

/// Runs one target with the arguments of this program, and ends the program. The name under which the program is called
/// selects the target. Under any other name the program lists its targets.
public func runFuzzer(_ targets: [FuzzTarget]) -> Never {
  let name = CommandLine.arguments[0].split(separator: "/").last.map { String($0) } ?? ""
  guard let target = targets.first(where: { $0.name == name }) else {
    for target in targets { print(target.name) }
    exit(0)
  }
  take = target.take
  var count = CommandLine.argc
  var arguments = CommandLine.unsafeArgv
  exit(
    runDriver(&count, &arguments) { bytes, byteCount in
      take(UnsafeRawBufferPointer(start: bytes, count: byteCount))
      return 0
    })
}
