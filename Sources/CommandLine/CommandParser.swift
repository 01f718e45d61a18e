import CSystem
import Text

/// One option of a command.
public struct CommandOption: Sendable {
  public let name: StaticString
  /// The character of the short option. A number above 255 means that there is no short option.
  public let key: CInt
  /// The argument's name in the help; nil if the option has no argument.
  public let argument: StaticString?
  public let help: StaticString

  public init(name: StaticString, key: CInt, argument: StaticString?, help: StaticString) {
    self.name = name
    self.key = key
    self.argument = argument
    self.help = help
  }
}

/// The options and arguments of a command, parsed by glibc's argp, which also provides `--help` and `--usage`.
public final class CommandParser {
  /// Handles an option or a plain argument. Returns nil if the value is valid, otherwise a description of the accepted
  /// values.
  public typealias Take = (_ key: CInt, _ value: String) -> StaticString?

  /// The key that `Take` receives for a plain argument, one without an option.
  public static let argument: CInt = 0

  private let options: [CommandOption]
  private let argumentCount: ClosedRange<Int>
  private let take: Take
  private var taken = 0

  /// Parses the options and arguments of a command. A wrong command line prints an error and ends the process.
  ///
  /// - `command`: all words of the command's name, such as “causeway log”, for the help text.
  /// - `arguments`: the plain arguments, for the help text.
  public static func parse(
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
