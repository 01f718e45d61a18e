import CSystem
import FileSupport
import Identity
import Primitives
import Testing

@testable import SecureTransport

// This file does not import Foundation, whose import of the system headers conflicts with that of CSystem
// (_GNU_SOURCE).

/// The generator SplitMix64. The generator's seed determines how a stream is split, so a failure can be repeated.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

/// An end of a stream, and the plaintext and frames that arrived at this end.
final class End {
  let stream: SecureStream
  var isEstablishedFirst: Bool?
  var plaintext: [UInt8] = []
  var frames: [[UInt8]] = []
  var onInput: (() -> Void)?

  init(
    _ identity: NodeIdentity, _ role: SecureStream.Role, _ version: TLSVersion = .tls13, judge: (any PeerJudge)? = nil
  ) throws {
    stream = try SecureStream(TLSCredentials(identity), role: role, versionMax: version, judge: judge)
  }

  func receive(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { raw in
      stream.receive(raw) { input in
        switch input {
        case .established: isEstablishedFirst = isEstablishedFirst == nil
        case .plaintext(let bytes):
          if isEstablishedFirst == nil { isEstablishedFirst = false }
          plaintext += bytes
        case .sealed(let header, let payload): frames.append(Array(header) + Array(payload))
        }
        onInput?()
      }
    }
  }

  func write(_ bytes: [UInt8]) -> Int { bytes.withUnsafeBytes { stream.write($0) } }
  func writeSealed(_ frame: [UInt8]) -> Bool {
    frame.withUnsafeBytes {
      stream.writeSealed(
        header: UnsafeRawBufferPointer(rebasing: $0[..<48]), payload: UnsafeRawBufferPointer(rebasing: $0[48...]))
    }
  }
  func take(_ count: Int = .max) -> [UInt8] {
    let bytes = Array(stream.outgoing.prefix(count))
    stream.consume(bytes.count)
    return bytes
  }
}

/// The two ends of a stream, which exchange bytes in memory.
final class Pair {
  let client: End
  let server: End
  private var random: SplitMix

  init(_ version: TLSVersion = .tls13, seed: UInt64 = 1) throws {
    client = try End(try makeIdentity(), .client, version)
    server = try End(try makeIdentity(), .server, version)
    random = SplitMix(state: seed)
  }

  /// Carries bytes in both directions until neither end has any left. The bytes are split into pieces of random length.
  func pump(splitMax: Int = 40000) {
    while !client.stream.outgoing.isEmpty || !server.stream.outgoing.isEmpty {
      server.receive(client.take(Int.random(in: 1...splitMax, using: &random)))
      client.receive(server.take(Int.random(in: 1...splitMax, using: &random)))
    }
  }

  static func established(_ version: TLSVersion = .tls13, bypass: Bool = false) throws -> Pair {
    let pair = try Pair(version)
    pair.pump()
    try #require(pair.client.stream.state == .established)
    try #require(pair.server.stream.state == .established)
    if bypass {
      pair.client.stream.allowBypass()
      pair.server.stream.allowBypass()
    }
    return pair
  }
}

/// A frame in the form of `writeSealed`: header and payload.
func frame(payload: Int, _ mark: UInt8 = 7) -> [UInt8] {
  var header = [UInt8](repeating: mark, count: 48)
  header[0] = 0x81
  header[6] = UInt8(payload >> 8)
  header[7] = UInt8(payload & 0xFF)
  return header + (0..<payload).map { UInt8(truncatingIfNeeded: $0) ^ mark }
}
