import Primitives

/// A connected byte stream handed over by a bearer. The receiver of this value owns the descriptor.
public struct StreamHandoff {
  public var descriptor: CInt
  public var bearer: BearerKind
  /// Whether the peer dialled. The node that dialled is the TLS client.
  public var isInbound: Bool
  /// The token given to `dial`; 0 for inbound streams.
  public var token: UInt32
  /// The maximum number of bytes in one `send` call: the largest SDU of an LE channel, or `Int.max` for a byte stream.
  public var unitBytesMax: Int
  /// The index of the interface that carries the stream; 0 if unknown or not an IP bearer.
  public var interfaceIndex: UInt32
  public var remote: RemoteAddress

  public init(
    descriptor: CInt, bearer: BearerKind, isInbound: Bool, token: UInt32, unitBytesMax: Int,
    interfaceIndex: UInt32, remote: RemoteAddress
  ) {
    self.descriptor = descriptor
    self.bearer = bearer
    self.isInbound = isInbound
    self.token = token
    self.unitBytesMax = unitBytesMax
    self.interfaceIndex = interfaceIndex
    self.remote = remote
  }
}

/// Events of a bearer or a discovery source. All calls come from the reactor's thread.
public protocol BearerDelegate: AnyObject {
  /// A stream is connected, by a dial of this node or of the peer.
  func bearerOpened(_ stream: StreamHandoff)
  /// The dial with this token failed; `reason` is one short sentence for the log.
  func bearerDialFailed(token: UInt32, reason: String)
  func bearerFound(_ candidate: Candidate)
  func bearerLost(_ candidate: Candidate)
  /// One line for the operator. The line states a fault and its remedy, or, if `isFault` is false, what works now.
  func bearerReport(_ source: StaticString, _ text: String, isFault: Bool)
}
