import CSystem

/// A fuzz target: its name, which is also the name of its corpus folder, and the function that runs it on one input.
public typealias FuzzTarget = (name: String, take: (UnsafeRawBufferPointer) -> Void)

#if FUZZING
  /// The main function of libFuzzer, for a program that has a main function of its own. It returns when all runs are
  /// done. See llvm.org/docs/LibFuzzer.html, “Using libFuzzer as a library”.
  @_silgen_name("LLVMFuzzerRunDriver")
  private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ take: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
  ) -> CInt

  nonisolated(unsafe) private var take: (UnsafeRawBufferPointer) -> Void = { _ in }

  /// Runs one target in libFuzzer with the arguments of this program, and ends the program. The name under which the
  /// program is called selects the target. Under any other name the program lists its targets.
  public func runTargets(_ targets: [FuzzTarget]) -> Never {
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
#else
  /// Runs every target on each input of its corpus folder, and ends the program. The first argument is the folder of
  /// all corpora. With `-v` as the second argument, the program prints each input before its run, so that the last line
  /// names the input that ended the program.
  public func runTargets(_ targets: [FuzzTarget]) -> Never {
    let arguments = CommandLine.arguments
    guard arguments.count >= 2 else {
      show("usage: \(arguments[0]) CORPUS [-v]")
      exit(2)
    }
    var count = 0
    for target in targets {
      let folder = "\(arguments[1])/\(target.name)"
      let names = files(in: folder)
      if names.isEmpty {
        show("fuzz \(target.name): \(folder) has no input")
        exit(2)
      }
      for name in names {
        if arguments.count > 2 { show("\(folder)/\(name)") }
        guard let bytes = contents(of: "\(folder)/\(name)") else {
          show("fuzz \(target.name): \(folder)/\(name) cannot be read")
          exit(2)
        }
        bytes.withUnsafeBytes { target.take($0) }
      }
      count += names.count
    }
    show("\(targets.count) targets took \(count) inputs of \(arguments[1])")
    exit(0)
  }

  /// Writes a line to standard output. `print` keeps lines in a buffer, which is lost when an input ends the program.
  private func show(_ text: String) {
    let line = Array("\(text)\n".utf8)
    _ = write(STDOUT_FILENO, line, line.count)
  }

  /// The bytes of a file of at most 1 MiB; nil if it cannot be read.
  private func contents(of path: String) -> [UInt8]? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
    return ferror(file) == 0 ? bytes : nil
  }

  /// The names of the files of a folder, sorted.
  private func files(in folder: String) -> [String] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }
#endif
