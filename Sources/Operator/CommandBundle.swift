import CSystem
import CommandLine
import Text

/// `causeway bundle`
public func commandBundle(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var output: String?
  var keepsIdentities = false
  CommandParser.parse(
    "causeway bundle", words,
    help: """
      Collect the data for a bug report in one tar archive, with or without a running daemon: status, routes, doctor, \
      journal, configuration, kernel log. Keys are not read, and passphrases are masked. Names, ids, addresses and \
      network names are masked as well, unless --names is given.\u{0B}Review the archive before you share it: tar xf \
      FILE.
      """,
    options: ClientOptions.options + [
      CommandOption(
        name: "output", key: 0x6F, argument: "FILE",
        help: "Write to FILE; - is standard output. Default: a new file in the current directory"),
      CommandOption(
        name: "names", key: 0x6E, argument: nil, help: "Do not mask names, ids, addresses and network names"),
    ]
  ) { key, value in
    if options.take(key, value) { return nil }
    if key == 0x6F { output = value } else { keepsIdentities = true }
    return nil
  }
  return run { () throws(CommandError) in
    let isPipe = output.map { $0.utf8.elementsEqual("-".utf8) } ?? false
    if isPipe && isatty(STDOUT_FILENO) == 1 {
      throw CommandError(
        saying: "standard output is a terminal; redirect the archive: > bundle.tar (with ssh, omit -t)",
        ExitCode.usage)
    }
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    let name = "causeway-bundle-\(compactTime(now.tv_sec))"
    let bundle = Bundle(options, keepsIdentities: keepsIdentities)
    bundle.collect()
    let archive = bundle.archive(named: name, seconds: UInt64(max(now.tv_sec, 0)))
    if isPipe { return Output.put(archive) }
    let file = output ?? "\(name).tar"
    try Output.replace(file, archive, mode: 0o600)
    show("", "\(file): \(bundle.partCount) parts, \(bytesText(UInt64(archive.bytes.count)))")
    for line in bundle.missing { show("  missing: ", line) }
  }
}

/// A UTC time in compact form, for example: 20260131T120000Z
private func compactTime(_ seconds: time_t) -> String {
  var seconds = max(seconds, 0), parts = tm(), text = TextBuilder()
  csystem_gmtime_r(&seconds, &parts)
  text.add(UInt64(parts.tm_year + 1900), digits: 4)
  for field in [parts.tm_mon + 1, parts.tm_mday] { text.add(UInt64(field), digits: 2) }
  text.add("T")
  for field in [parts.tm_hour, parts.tm_min, parts.tm_sec] { text.add(UInt64(field), digits: 2) }
  text.add("Z")
  return String(decoding: text.bytes, as: UTF8.self)
}
