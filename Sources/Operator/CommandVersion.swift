import CMbedTLS
import CommandLine
import Status
import Text

/// `causeway version`
public func commandVersion(_ words: CommandWords) -> CInt {
  CommandParser.parse("causeway version", words, help: "Show the version, build and libraries of this binary.") {
    _, _ in nil
  }
  Output.put(versionText)
  return ExitCode.done
}

/// The version of the program, its build mode, and its mbedTLS version.
var versionText: TextBuilder {
  var text = TextBuilder()
  text.add("causeway \(causewayVersion)\n")
  text.add("build: \(buildMode), \(architecture)\n")
  text.add("mbedTLS \(MBEDTLS_VERSION_STRING)\n")
  return text
}

private var buildMode: StaticString {
  #if hasFeature(Embedded)
    "Embedded Swift, static"
  #else
    "Swift with its runtime"
  #endif
}

private var architecture: StaticString {
  #if arch(x86_64)
    "x86_64"
  #elseif arch(arm64)
    "aarch64"
  #else
    "another architecture"
  #endif
}
