internal import Transfer
internal import TransferFiles

extension ResourceStream {
  /// Whether a stream name has the prefix that is reserved for file transfers (docs/resources.md).
  static func isReserved(_ name: String) -> Bool { name.utf8.starts(with: prefix) }

  init?(_ name: String) { self.init(Array(name.utf8)) }

  var text: String { String(decoding: name, as: UTF8.self) }
}

extension CausewayError {
  init(_ failure: ResourceError) {
    let reason: Reason =
      switch failure.reason {
      case .invalid: .invalid
      case .storage: .storage
      case .noSpace: .noSpace
      case .busy: .busy
      case .unsupported: .unsupported
      case .outOfReach: .outOfReach
      case .timedOut: .timedOut
      case .cancelled: .cancelled
      }
    self.init(reason, failure.path.isEmpty ? failure.text : "\(harmless(failure.path)): \(failure.text)")
  }
}
