import CSystem
import Configuration
import Text

/// One command of the binary.
public struct Command {
  let name: StaticString
  let summary: StaticString
  let run: (CommandWords) -> CInt

  public init(name: StaticString, summary: StaticString, run: @escaping (CommandWords) -> CInt) {
    self.name = name
    self.summary = summary
    self.run = run
  }
}

/// Runs the command named by the first word after `group`, the name of the program or of a group of commands. Prints
/// the list of commands if no command has this name.
public func dispatch(_ words: CommandWords, _ group: StaticString, _ commands: [Command], help: StaticString) -> CInt {
  let name = ByteString(words[1])
  if let command = commands.first(where: { name.equals($0.name) }) { return command.run(words.rest) }
  let isHelp = name.isEmpty || name.equals("--help") || name.equals("-?") || name.equals("help")
  var text = TextBuilder()
  if !isHelp {
    text.add("\(group): there is no command “")
    text.add(untrusted: name.bytes)
    text.add("”\n\n")
  }
  text.add("Usage: \(group) COMMAND [OPTION...]\n\(help)\n\n")
  for command in commands {
    let start = text.bytes.count
    text.add("  \(command.name)")
    text.pad(from: start, to: 12)
    text.add("\(command.summary)\n")
  }
  text.add("\n“\(group) COMMAND --help” shows more.\n\(ExitCode.help)\n")
  if isHelp { Output.put(text) } else { text.write(to: STDERR_FILENO) }
  return isHelp ? ExitCode.done : ExitCode.usage
}
