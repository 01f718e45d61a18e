import CSystem
import CommandLine
import Configuration
import DaemonClient
import Text
import Reactor
import TransferFiles

private let countKey: CInt = 0x63 << 8
private let maxKey: CInt = 0x6D << 8
private let countOption = CommandOption(
  name: "count", key: countKey, argument: "N", help: "Exit after N offers that were received or failed")
private let maxOption = CommandOption(
  name: "max", key: maxKey, argument: "SIZE", help: "Decline larger offers; SIZE in bytes, or with k, M or G")
private let help: StaticString = """
  Receive into DIR the files and folders that peers send with “causeway send”. Each appears when it is complete and \
  verified. A name that is taken becomes foto-2.jpg; nothing is ever replaced. Until then, the data is in a hidden \
  folder in DIR, and an interrupted transfer resumes within 24 hours without another prompt.\u{0B}On a terminal, it \
  prompts for each offer; otherwise, or with --pinned, it accepts offers of peers whose keys are pinned here. With \
  --json, everything goes to standard output, as events offer, answer, progress, stored, received and failed.\n\nExit \
  code 1 means that an offer could not be received, 4 that --for ended before --count, 5 that ^C cancelled a transfer.
  """
private let dropHelp: StaticString = """
  Receive files and folders into DIR like “causeway receive”, but unattended: without a time limit and without \
  prompts, from peers whose keys are pinned here or that --from names. For a service.\u{0B}Each received offer is a \
  line on standard output, each declined or failed one a line on standard error. With --json, the events are offer, \
  answer, stored, received and failed.
  """

/// `causeway receive`
public func commandReceive(_ words: CommandWords) -> CInt {
  receive(
    words, "causeway receive", help, isDrop: false,
    options: LocalOptions.options + AcceptRule.options + [
      FilesOptions.type, LocalOptions.name, maxOption, countOption, LocalOptions.stay, LocalOptions.json,
    ])
}

/// `causeway drop`
public func commandDrop(_ words: CommandWords) -> CInt {
  receive(
    words, "causeway drop", dropHelp, isDrop: true,
    options: LocalOptions.options + AcceptRule.options + [
      FilesOptions.type, LocalOptions.name, maxOption, LocalOptions.json,
    ])
}

private func receive(
  _ words: CommandWords, _ command: StaticString, _ help: StaticString, isDrop: Bool, options known: [CommandOption]
) -> CInt {
  var options = FilesOptions()
  var rule = AcceptRule(canAsk: ProcessConsole.canAsk)
  var directory = ""
  var count = UInt64.max, bytesMax = UInt64.max
  if isDrop { _ = rule.take(AcceptRule.pinnedKey, "") }
  CommandParser.parse(command, words, arguments: "DIR", count: 1...1, help: help, options: known) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    if let accepted = rule.take(key, value) { return accepted }
    switch key {
    case countKey:
      guard let number = ByteString(value).number(in: 1...1_000_000) else { return "a number from 1 to 1000000" }
      count = number
    case maxKey:
      guard let bytes = byteCount(value) else { return "a number of bytes, optionally followed by k, M or G" }
      bytesMax = bytes
    default: directory = value
    }
    return nil
  }
  return run { () throws(CommandError) in
    do throws(FileError) {
      _ = try Files.folder(path: directory)
    } catch {
      throw CommandError(saying: "\(directory): \(error.text)")
    }
    guard access(directory, W_OK | X_OK) == 0 else {
      throw CommandError(saying: "\(directory): \(SystemError.last.text)")
    }
    let connection = try options.local.connect(as: isDrop ? "drop" : "receive")
    let console = ProcessConsole([SIGINT, SIGTERM, SIGHUP])
    try Receiving(connection, console, options, rule, directory, bytesMax, count).run()
  }
}
