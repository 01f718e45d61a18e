#if canImport(SecureTransport)
  import CMbedTLS
  import CSystem
  import Identity
  import Node
  import Primitives
  import Seal
  import SecureTransport
  import Simulator

  /// A node's key and sealed sessions with mbedTLS, as in the firmware, but with random numbers from the seed of the
  /// simulation. A seed determines its keys, so they give no security and must not be used outside of simulations.
  final class RealKey: SimulatedKey {
    let id: NodeID
    let point: [UInt8]
    private(set) var signCount = 0
    private(set) var verifyCount = 0
    private let identity: NodeIdentity
    private let sessions: DTLSSessions

    /// Makes the keys of one network. The caller requests the keys in order, from number 0, which restarts the random
    /// numbers. From then on keys of an earlier network must not be used.
    static func make(_ seed: UInt64, _ number: Int) -> any SimulatedKey {
      if number == 0 { SeededEntropy.restart(seed) }
      do {
        return try RealKey()
      } catch {
        fatalError("mbedTLS makes no key: \(error)")
      }
    }

    private init() throws {
      var path = [UInt8]("/tmp/simulate-XXXXXX".utf8) + [0]
      _ = path.withUnsafeMutableBytes { mkdtemp($0.bindMemory(to: CChar.self).baseAddress!) }
      let directory = try StateDirectory(String(decoding: path.dropLast(), as: UTF8.self))
      defer {
        unlink(directory.file("node.key"))
        rmdir(directory.path)
      }
      identity = try NodeIdentity.create(directory)
      sessions = try DTLSSessions(identity)
      id = identity.id
      let publicPoint = identity.publicPoint
      point = publicPoint.indices.map { publicPoint[$0] }
    }

    func digest(_ bytes: RawSpan) -> InlineArray<32, UInt8> {
      let digest = sha256(bytes.withUnsafeBytes { [UInt8]($0) })
      return InlineArray { digest[$0] }
    }

    func sign(_ message: RawSpan) -> InlineArray<64, UInt8> {
      signCount += 1
      return message.withUnsafeBytes { identity.sign($0) }
    }

    func verify(_ signature: RawSpan, over message: RawSpan, by point: RawSpan, of node: NodeID) -> Bool {
      verifyCount += 1
      return point.withUnsafeBytes { NodeIdentity.nodeID(ofPoint: $0) } == node
        && NodeIdentity.verify(signature, over: message, by: point)
    }

    func beginSession(_ name: SessionName, now: Instant) -> (any PeerSession)? { sessions.beginSession(name, now: now) }

    func answerHello(
      _ datagram: RawSpan, _ name: SessionName, reply: UnsafeMutableRawBufferPointer, now: Instant
    ) -> HelloAnswer {
      sessions.answerHello(datagram, name, reply: reply, now: now)
    }

    func refuseHello(_ datagram: RawSpan, reply: UnsafeMutableRawBufferPointer) -> Int {
      sessions.refuseHello(datagram, reply: reply)
    }

    func acceptSession(_ datagram: RawSpan, _ name: SessionName, now: Instant) -> (any PeerSession)? {
      sessions.acceptSession(datagram, name, now: now)
    }
  }

  /// The source of random numbers for mbedTLS in a simulation. The random numbers are determined by the network's seed,
  /// so a seed always gives the same keys, hellos and signature lengths.
  private enum SeededEntropy {
    nonisolated(unsafe) private static var random = SeededRandom(seed: 0)

    static func restart(_ seed: UInt64) {
      random = SeededRandom(seed: seed ^ 0x7e57)
      mbedtls_psa_crypto_free()
      let status = mbedtls_psa_crypto_configure_entropy_sources(
        { context in
          guard let context else { return }
          mbedtls_entropy_init(context)
          cmbedtls_entropy_drop_sources(context)
          mbedtls_entropy_add_source(
            context,
            { _, output, byteCount, written in
              for index in 0..<byteCount { output?[index] = UInt8(truncatingIfNeeded: SeededEntropy.random.next()) }
              written?.pointee = byteCount
              return 0
            }, nil, 32, MBEDTLS_ENTROPY_SOURCE_STRONG)
        }, { mbedtls_entropy_free($0) })
      precondition(status == PSA_SUCCESS && psa_crypto_init() == PSA_SUCCESS, "mbedTLS does not start")
    }
  }

  /// Replaces time() of the C library by a constant, because mbedTLS puts the time of day into its hellos (RFC 5246,
  /// 7.4.1.2).
  @_cdecl("time") public func simulatedTime(_ result: UnsafeMutablePointer<Int>?) -> Int {
    result?.pointee = 0
    return 0
  }
#endif
