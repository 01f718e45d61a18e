import Configuration
import FuzzSupport

/// Parses any bytes as a configuration file. The file is accepted, or refused with an error of one line.
func fuzzConfigurations(_ input: UnsafeRawBufferPointer) {
  do throws(ConfigurationError) {
    let configuration = try Configuration.parse(Array(input), file: "causeway.conf")
    let node = configuration.node
    expect((1...64).contains(node.peersMax), "peers-max \(node.peersMax)")
    expect(node.displayName.utf8.count <= 63, "a display name of \(node.displayName.utf8.count) bytes")
    expect((1...15).contains(node.serviceType.utf8.count), "a service type of \(node.serviceType.utf8.count) bytes")
    for warning in configuration.warnings { expect(!warning.utf8.contains(0x0A), "a warning of several lines") }
  } catch {
    expect(!error.text.utf8.contains(0x0A), "a refusal of several lines")
    expect(error.text.utf8.starts(with: "causeway.conf:".utf8), "a refusal that does not name the file")
  }
}
