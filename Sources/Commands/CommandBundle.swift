import CSystem
import Configuration
import Diagnostics
import Reactor

/// `causeway bundle`
func commandBundle(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var output: String?
  var keepsIdentities = false
  CommandParser.parse(
    "causeway bundle", words,
    help: """
      Collect what a bug report needs in one tar archive, also when the daemon is dead: status, routes, doctor, journal, \
      configuration, kernel. No key is read, and passphrases are masked; so are names, ids, addresses and network names, \
      unless they are asked for.\u{0B}Look at it before you give it away: tar xf FILE.
      """,
    options: ClientOptions.options + [
      CommandOption(
        name: "output", key: 0x6F, argument: "FILE",
        help: "Write it there; - for standard output. Default: a new file in this directory"),
      CommandOption(
        name: "names", key: 0x6E, argument: nil, help: "Keep names, ids, addresses and network names as they are"),
    ]
  ) { key, value in
    if options.take(key, value) { return nil }
    if key == 0x6F { output = value } else { keepsIdentities = true }
    return nil
  }
  return run { () throws(CommandFailure) in
    let isPipe = output.map { $0.utf8.elementsEqual("-".utf8) } ?? false
    if isPipe && isatty(STDOUT_FILENO) == 1 {
      throw CommandFailure(
        saying: "an archive is nothing for a terminal; redirect it: > bundle.tar (with ssh also without -t)",
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
    for line in bundle.missing { show("  without ", line) }
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
