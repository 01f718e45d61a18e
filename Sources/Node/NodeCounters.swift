import Frame

/// Counters of a node since its start.
public struct NodeCounters: Sendable {
  public var refusals = RefusalCounters()
  public var framesForwarded: UInt64 = 0
  public var bytesForwarded: UInt64 = 0
  /// Routed frames dropped for lack of a route.
  public var dropsNoRoute: UInt64 = 0
  /// The number of frames that were dropped because they are longer than the next link accepts.
  public var dropsTooLong: UInt64 = 0
  public var advertisementsAccepted: UInt64 = 0
  /// Encrypted sessions that were established with peers, including renewals.
  public var sessionsOpened: UInt64 = 0
  /// The number of failed handshakes of encrypted sessions.
  public var sessionsFailed: UInt64 = 0
  /// Encrypted sessions with correct keys that either end refused.
  public var sessionsRefused: UInt64 = 0
  /// Messages of application sessions that were invalid.
  public var sessionMessagesRefused: UInt64 = 0
  /// Handshakes of encrypted sessions that this node refused for lack of capacity.
  public var handshakesTurnedAway: UInt64 = 0
}
