import CSystem
import Configuration
import Primitives
import Reactor
import Text

/// The exit codes of all commands.
enum ExitCode {
  static let done: CInt = 0
  /// The command failed; a line on stderr states the reason.
  static let failed: CInt = 1
  /// The command line or the configuration is wrong.
  static let usage: CInt = 2
  /// No daemon answers at the control socket.
  static let noDaemon: CInt = 3
  /// A time limit of the command has passed.
  static let timedOut: CInt = 4
  /// A stream was cut: the receiver has only the first part of the bytes that the sender wrote.
  static let cut: CInt = 5
  /// The peer refused, for example an invitation, a stream or an offer.
  static let refused: CInt = 6

  static let help: StaticString =
    """
    Exit codes: 0 done, 1 failed (the reason is on stderr), 2 wrong usage or
    configuration, 3 no daemon answers, 4 timeout, 5 a stream was cut, 6 the peer
    refused.
    """
}

/// One option of a command.
struct CommandOption {
  let name: StaticString
  /// The character of the short option. A number above 255 means that there is no short option.
  let key: CInt
  /// The argument's name in the help; nil if the option has no argument.
  let argument: StaticString?
  let help: StaticString
}

/// The options and arguments of a command, parsed by glibc's argp, which also provides `--help` and `--usage`.
final class CommandParser {
  /// Handles an option or a plain argument. Returns nil if the value is valid, otherwise a description of the accepted
  /// values.
  typealias Take = (_ key: CInt, _ value: String) -> StaticString?

  /// The key that `Take` receives for a plain argument, one without an option.
  static let argument: CInt = 0

  private let options: [CommandOption]
  private let argumentCount: ClosedRange<Int>
  private let take: Take
  private var taken = 0

  /// Parses the options and arguments of a command. A wrong command line prints an error and ends the process.
  ///
  /// - `command`: all words of the command's name, such as “causeway log”, for the help text.
  /// - `arguments`: the plain arguments, for the help text.
  static func parse(
    _ command: StaticString, _ words: CommandWords, arguments: StaticString = "",
    count: ClosedRange<Int> = 0...0, help: StaticString, options: [CommandOption] = [], take: @escaping Take
  ) {
    let parser = CommandParser(options, count, take)
    parser.run(command, words, arguments, help)
  }

  private init(_ options: [CommandOption], _ argumentCount: ClosedRange<Int>, _ take: @escaping Take) {
    self.options = options
    self.argumentCount = argumentCount
    self.take = take
  }

  private func run(_ command: StaticString, _ words: CommandWords, _ arguments: StaticString, _ help: StaticString) {
    // argp keeps pointers into this table while it parses, so the table is not a Swift array.
    let table = UnsafeMutablePointer<argp_option>.allocate(capacity: options.count + 1)
    table.initialize(repeating: argp_option(), count: options.count + 1)
    for (index, option) in options.enumerated() {
      table[index] = argp_option(
        name: cString(option.name), key: option.key, arg: option.argument.map { cString($0) }, flags: 0,
        doc: cString(option.help), group: 0)
    }
    var parser = argp()
    parser.options = UnsafePointer(table)
    parser.parser = { key, value, state in
      let parser = Unmanaged<CommandParser>.fromOpaque(state!.pointee.input!).takeUnretainedValue()
      return parser.handle(key, value, state!)
    }
    parser.args_doc = cString(arguments)
    parser.doc = cString(help)
    csystem_argp_set_error_status(ExitCode.usage)
    let vector = words.vector(named: command)
    _ = argp_parse(&parser, CInt(words.count), vector, 0, nil, Unmanaged.passUnretained(self).toOpaque())
    table.deallocate()
  }

  private func handle(
    _ key: CInt, _ value: UnsafeMutablePointer<CChar>?, _ state: UnsafeMutablePointer<argp_state>
  ) -> error_t {
    let isOption = options.contains { $0.key == key }
    if !isOption && key == CInt(ARGP_KEY_END) {
      if taken < argumentCount.lowerBound { csystem_argp_error(state, "an argument is missing") }
      return 0
    }
    guard isOption || key == CInt(ARGP_KEY_ARG) else { return CInt(E2BIG) }
    if !isOption {
      taken += 1
      if taken > argumentCount.upperBound { csystem_argp_error(state, "too many arguments") }
    }
    let text = value.map { String(cString: $0) } ?? ""
    if let accepted = take(isOption ? key : Self.argument, text) {
      csystem_argp_error(state, "“\(shown(text))” is not accepted; expected \(accepted)")
    }
    return 0
  }

  private func cString(_ text: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
  }
}

/// The words of a command line. The first word is the command's own name.
struct CommandWords {
  private let first: Int

  private init(first: Int) { self.first = first }

  /// All words of the process.
  static var all: CommandWords { CommandWords(first: 0) }

  var count: Int { Int(csystem_argc()) - first }

  /// The words after the first one.
  var rest: CommandWords { CommandWords(first: first + 1) }

  /// The word at `index`; empty if there is none. Index 0 is the command's name.
  subscript(index: Int) -> String {
    guard index < count, let word = csystem_argv()[first + index] else { return "" }
    return String(cString: word)
  }

  /// The words in the form that argp needs. `command`, the complete name, replaces the first word, because argp shows
  /// this word in help and errors.
  func vector(named command: StaticString) -> UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> {
    let vector = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: count + 1)
    vector[0] = UnsafeMutableRawPointer(mutating: command.utf8Start).assumingMemoryBound(to: CChar.self)
    for index in 1...count { vector[index] = csystem_argv()[first + index] }
    return vector
  }
}

/// A number of seconds from the command line; nil if it is invalid.
func parseSeconds(_ value: String) -> UInt64? { ByteString(value).number(in: 1...1_000_000) }

/// The values that `parseSeconds` accepts, as text for an error.
let secondsAccepted: StaticString = "a number of seconds from 1 to 1000000"

/// The instant that is `seconds` from now, or `.never` if `seconds` is nil.
func deadline(after seconds: UInt64?) -> Instant {
  guard let seconds else { return .never }
  return monotonicNow() + .seconds(seconds)
}

/// Prints one line on standard output. Control characters in `text` are replaced (`TextBuilder.add(message:)`).
func show(_ prefix: StaticString, _ text: String) {
  var line = TextBuilder()
  line.add(prefix)
  line.add(message: text.utf8)
  line.add("\n")
  Output.put(line)
}

/// Prints one line on standard error, after the program's name. Control characters in `text` are replaced
/// (`TextBuilder.add(message:)`).
func printError(_ text: String) {
  var line = TextBuilder()
  line.add(message: text.utf8)
  Output.putError(line)
}

/// Prints one line on standard error, after the program's name. `text` must already be free of control characters.
func printError(_ text: TextBuilder) { Output.putError(text) }
