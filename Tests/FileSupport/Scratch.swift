import CSystem
import Identity
import Primitives
import Testing

// This file does not import Foundation, whose import of the system headers conflicts with that of CSystem
// (_GNU_SOURCE).

/// A temporary directory that is removed with its test.
public final class Scratch {
  public let path: String

  public init() {
    var template = Array("/tmp/causeway-test-XXXXXX".utf8CString)
    path = String(cString: mkdtemp(&template)!)
  }
  deinit { _ = shell("rm -rf \(path)") }

  public func file(_ name: String) -> String { path + "/" + name }
  public func bytes(_ name: String) -> [UInt8]? { try? readFile(file(name), bytesMax: 262_144) }
  public func remove(_ name: String) throws { try #require(unlink(file(name)) == 0) }
  public func chmod(_ name: String, _ mode: UInt32) throws { try #require(CSystem.chmod(file(name), mode) == 0) }
  public func mode(_ name: String) throws -> UInt32 {
    var status = stat()
    try #require(stat(file(name), &status) == 0)
    return status.st_mode & 0o777
  }
  public func write(_ name: String, _ text: String) throws {
    let file = try #require(fopen(file(name), "w"))
    defer { fclose(file) }
    try #require(fwrite(text, 1, text.utf8.count, file) == text.utf8.count)
  }
  public func write(_ name: String, _ bytes: [UInt8]) throws {
    let file = try #require(fopen(file(name), "w"))
    defer { fclose(file) }
    try #require(fwrite(bytes, 1, bytes.count, file) == bytes.count)
  }

  /// Runs openssl in this directory and returns its output.
  @discardableResult
  public func openssl(_ arguments: String) throws -> String {
    let (status, text) = shell("cd \(path) && openssl \(arguments) 2>&1")
    try #require(status == 0, "openssl \(arguments): \(text)")
    return text
  }
}

/// Runs a shell command and returns its exit status and output.
public func shell(_ command: String) -> (status: Int32, output: String) {
  guard let pipe = popen(command, "re") else { return (-1, "") }
  var output: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 4096)
  while true {
    let count = fread(&buffer, 1, buffer.count, pipe)
    if count == 0 { break }
    output += buffer[..<count]
  }
  return (pclose(pipe), String(decoding: output, as: UTF8.self))
}

public func makeIdentity() throws -> NodeIdentity {
  let scratch = Scratch()
  return try withExtendedLifetime(scratch) { try NodeIdentity.loadOrCreate(directory: scratch.path + "/made") }
}

public func hex(_ bytes: some Sequence<UInt8>) -> String {
  bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
public func array<let count: Int>(_ bytes: InlineArray<count, UInt8>) -> [UInt8] { bytes.indices.map { bytes[$0] } }
public func hex(_ id: NodeID) -> String { hex((0..<16).map { id.byte($0) }) }
