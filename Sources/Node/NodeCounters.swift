import Frame

/// Counters of a node since its start.
public struct NodeCounters: Sendable {
  public var refusals = RefusalCounters()
  public var framesForwarded: UInt64 = 0
  public var bytesForwarded: UInt64 = 0
  /// Routed frames without a route.
  public var dropsNoRoute: UInt64 = 0
  /// Frames longer than the next link accepts.
  public var dropsTooLong: UInt64 = 0
  public var advertisementsAccepted: UInt64 = 0
  /// Sessions with peers that were established, renewals included.
  public var sessionsOpened: UInt64 = 0
  /// Handshakes that failed.
  public var sessionsFailed: UInt64 = 0
  /// Sessions that either end refused although the keys were right.
  public var sessionsRefused: UInt64 = 0
  /// Messages of sessions that were not legal.
  public var sessionMessagesRefused: UInt64 = 0
  /// Handshakes for which there was no place.
  public var handshakesTurnedAway: UInt64 = 0
}
