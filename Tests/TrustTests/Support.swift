import CSystem
import Frame
import Identity
import Primitives
import SecureTransport
import Synchronization
import Testing

@testable import Trust

/// A temporary directory that is removed with its test.
final class TemporaryDirectory {
  let path: String
  init() {
    var template = Array("/tmp/causeway-test-XXXXXX".utf8CString)
    path = String(cString: mkdtemp(&template)!)
  }
  deinit { _ = system("rm -rf \(path)") }
}

/// The clock that a keeper reads and a test sets.
final class Watch {
  var seconds = TrustTime.releaseSeconds + 1000
  var isSynchronised = true
}

/// The trust part of a box, which a test can start repeatedly.
final class Box {
  let directory = TemporaryDirectory()
  let watch = Watch()
  var policy = TrustPolicy.firstUse
  var operators: [NodeID] = []

  func start() throws -> TrustKeeper {
    let stateDirectory = try StateDirectory(directory.path)
    let identity = try NodeIdentity.loadOrCreate(directory: directory.path)
    let watch = watch
    return TrustKeeper(
      identity, try TrustStore(stateDirectory), policy: policy, anchors: TrustAnchors(), operators: operators,
      clock: { (watch.seconds, watch.isSynchronised) })
  }

  func corrupt(_ name: String) throws {
    let file = try #require(fopen(directory.path + "/" + name, "r+"))
    defer { fclose(file) }
    try #require(fwrite("torn", 1, 4, file) == 4)
  }
}

/// The hour in which the next proof of this test process takes place.
private let hours = Atomic<UInt64>(0)

func proof(from source: UInt64, over bearer: BearerKind = .ethernet, seconds: UInt64 = 0) -> KeyProof {
  KeyProof(from: source, over: bearer, at: .zero + .seconds(seconds))
}
func id(_ number: UInt64) -> NodeID { NodeID(high: number, low: ~number) }
func name(_ text: String) -> [UInt8] { Array(text.utf8) }

extension TrustKeeper {
  /// Same as `refusal(of:named:proof:)`, with a proof over a link from source 0. Each proof takes place an hour after
  /// the previous one, so that no rate limit applies.
  func refusal(of peer: NodeID, named name: [UInt8], isProven: Bool) -> PeerRefusal? {
    refusal(
      of: peer, named: name,
      proof: isProven ? proof(from: 0, seconds: hours.add(1, ordering: .relaxed).newValue * 3600) : nil)
  }

  func takes(_ bytes: [UInt8], from issuer: NodeID) -> Bool { take(bytes.span.bytes, from: issuer) == .accepted }
}
