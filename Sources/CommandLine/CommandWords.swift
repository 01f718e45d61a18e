import CSystem

/// The words of a command line. The first word is the command's own name.
public struct CommandWords {
  private let first: Int

  private init(first: Int) { self.first = first }

  /// All words of the process.
  public static var all: CommandWords { CommandWords(first: 0) }

  public var count: Int { Int(csystem_argc()) - first }

  /// The words after the first one.
  public var rest: CommandWords { CommandWords(first: first + 1) }

  /// The word at `index`; empty if there is none. Index 0 is the command's name.
  public subscript(index: Int) -> String {
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
