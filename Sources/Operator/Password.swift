import CSystem
import CommandLine
import Identity
import Text

/// Reads the password of a key file that is imported.
enum Password {
  /// The first line of a password file.
  static func read(file path: String) throws(CommandError) -> [UInt8] {
    let bytes: [UInt8]?
    do throws(IdentityError) {
      bytes = try readFile(path, bytesMax: 4096)
    } catch {
      throw CommandError(saying: error.text)
    }
    guard let bytes else { throw CommandError(saying: "\(path): no such file") }
    return Array(bytes.prefix { $0 != 0x0A && $0 != 0x0D })
  }

  /// Asks for a file's password on the terminal, without echo.
  static func ask(for path: String) throws(CommandError) -> [UInt8] {
    let terminal = csystem_open("/dev/tty", O_RDWR | O_CLOEXEC, 0)
    if terminal < 0 { throw CommandError(saying: "no terminal to prompt for the password; use --password-file") }
    defer { close(terminal) }
    var seen = termios()
    tcgetattr(terminal, &seen)
    var unseen = seen
    unseen.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(terminal, TCSAFLUSH, &unseen)
    defer { tcsetattr(terminal, TCSAFLUSH, &seen) }
    put("Password of \(shown(path)): ", terminal)
    var password: [UInt8] = []
    var byte: UInt8 = 0
    while CSystem.read(terminal, &byte, 1) == 1, byte != 0x0A, password.count < 1024 { password.append(byte) }
    put("\n", terminal)
    return password
  }

  private static func put(_ text: String, _ terminal: CInt) {
    let bytes = Array(text.utf8)
    _ = bytes.withUnsafeBytes { write(terminal, $0.baseAddress, $0.count) }
  }
}
