import Configuration

/// Stands where `Relay.swift` comes to be, which brings this function.
func runRelay(_ configuration: Configuration) -> CInt {
  complain("this build has no relay")
  return ExitCode.failed
}
