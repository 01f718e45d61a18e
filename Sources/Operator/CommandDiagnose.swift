import CSystem
import CommandLine
import Text

/// `causeway diagnose`
///
/// The forced command (sshd_config(5), ForceCommand) of an SSH account that is only allowed to read the box's state.
/// sshd passes the user's command line in SSH_ORIGINAL_COMMAND. No shell evaluates this text: it is split at blanks and
/// compared with the allowed commands and options.
public func commandDiagnose(_ words: CommandWords) -> CInt {
  CommandParser.parse(
    "causeway diagnose", words,
    help: """
      For ForceCommand in sshd's configuration. Run the command in SSH_ORIGINAL_COMMAND if it only reads and its \
      options name no files. Without a command, list those that are allowed.
      """,
    take: { _, _ in nil })
  let asked = getenv("SSH_ORIGINAL_COMMAND").map { String(cString: $0) } ?? ""
  let request = asked.utf8.split(whereSeparator: isBlank).map { Array($0) }
  guard let name = request.first, !isWord(name, "help") else {
    Output.put(listing)
    return ExitCode.done
  }
  guard let command = diagnoses.first(where: { isWord(name, $0.name) }) else {
    return refuse("there is no command “", name)
  }
  for word in request.dropFirst() where word.first == UInt8(ascii: "-") {
    let option = word.prefix { $0 != UInt8(ascii: "=") }
    guard command.options.contains(where: { isWord(Array(option), $0) }) else {
      return refuse("\(command.name) takes no option “", word)
    }
  }
  return carryOut(request + command.added.map { $0.bytes })
}

/// A command that the SSH account is allowed to run. The command changes nothing and reads only the state of the box.
private struct Diagnosis {
  let name: StaticString
  /// The allowed options, which must be given in full. Abbreviations, which argp accepts, are refused.
  let options: [StaticString]
  /// Words that are appended to the user's command line.
  var added: [StaticString] = []
}

private let probeOptions: [StaticString] = ["--json", "--wait", "--timeout", "--help"]

private var diagnoses: [Diagnosis] {
  [
    Diagnosis(name: "status", options: ["--json", "--help"]),
    Diagnosis(name: "peers", options: ["--json", "--help"]),
    Diagnosis(name: "links", options: ["--json", "--help"]),
    Diagnosis(name: "routes", options: ["--json", "--help"]),
    Diagnosis(name: "radios", options: ["--json", "--help"]),
    Diagnosis(name: "sessions", options: ["--json", "--help"]),
    Diagnosis(name: "explain", options: ["--json", "--help"]),
    Diagnosis(name: "ping", options: probeOptions + ["--count"]),
    Diagnosis(name: "trace", options: probeOptions),
    Diagnosis(name: "log", options: ["--follow", "--since", "--level", "--json", "--help"]),
    Diagnosis(name: "top", options: ["--interval", "--once", "--json", "--help"]),
    Diagnosis(name: "capture", options: ["--link", "--count", "--seconds", "--size", "--help"]),
    Diagnosis(name: "metrics", options: ["--help"]),
    Diagnosis(name: "bundle", options: ["--names", "--help"], added: ["--output", "-"]),
    Diagnosis(name: "doctor", options: ["--json", "--help"]),
    Diagnosis(name: "leds", options: ["--help"]),
    Diagnosis(name: "version", options: ["--help"]),
  ]
}

private var listing: TextBuilder {
  var text = TextBuilder()
  text.add("Commands of this account:")
  for command in diagnoses { text.add(" \(command.name)") }
  text.add("\n")
  return text
}

private func refuse(_ reason: String, _ word: [UInt8]) -> CInt {
  var text = TextBuilder()
  text.add(reason)
  text.add(untrusted: word)
  text.add("” here. ")
  for byte in listing.bytes.dropLast() { text.add(byte: byte) }
  printError(text)
  return ExitCode.usage
}

/// Replaces this process with the allowed command. Only TERM is kept of the environment.
private func carryOut(_ words: [[UInt8]]) -> CInt {
  var arguments = ([utf8("causeway")] + words).map { copy($0) }
  var environment = getenv("TERM").map { [copy(utf8("TERM=") + Array(String(cString: $0).utf8))] } ?? []
  arguments.append(nil)
  environment.append(nil)
  execve("/proc/self/exe", &arguments, &environment)
  printError("/proc/self/exe: \(String(cString: strerror(csystem_errno())))")
  return ExitCode.failed
}

/// Copies bytes into a C string. The bytes contain no zero byte, because they come from a C string.
private func copy(_ bytes: [UInt8]) -> UnsafeMutablePointer<CChar>? {
  bytes.withUnsafeBytes { raw in strndup(raw.baseAddress!.assumingMemoryBound(to: CChar.self), raw.count) }
}

private func isWord(_ bytes: [UInt8], _ word: StaticString) -> Bool { bytes == word.bytes }

private func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
