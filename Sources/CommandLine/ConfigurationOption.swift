import Configuration

/// The option that names the configuration file.
public let configOption = CommandOption(
  name: "config", key: 0x63, argument: "FILE", help: "Configuration file; default /etc/causeway/causeway.conf")

/// Loads a configuration, and prints its errors and warnings on standard error. Returns nil if the configuration is
/// invalid or cannot be read. With `mayBeDenied`, nothing is printed if the user lacks the permission to read the file.
public func loadConfiguration(_ path: String?, mayBeDenied: Bool = false) -> Configuration? {
  do throws(ConfigurationError) {
    let configuration = try Configuration.load(path: path)
    for warning in configuration.warnings { printError(warning) }
    return configuration
  } catch {
    if !mayBeDenied || !error.isDenied { printError(error.text) }
    return nil
  }
}

/// The configuration of a command that only needs a path in the runtime directory, such as the daemon's socket. An
/// error in a file given by --config is printed, and the exit code is thrown. The default file may be unreadable for
/// this user, or may have been changed since the daemon read it and contain an error. In both cases the default values
/// are used, and the command goes on.
public func findConfiguration(_ path: String?) throws(CommandError) -> Configuration {
  if let configuration = loadConfiguration(path, mayBeDenied: path == nil) { return configuration }
  guard path == nil else { throw CommandError(ExitCode.usage) }
  return Configuration()
}
