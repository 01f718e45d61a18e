import Primitives

/// Two ordered streams between two nodes, so that a chat line never waits behind a file. The raw value is on
/// the wire.
public enum Lane: UInt8, Sendable, CaseIterable {
  /// Messages that somebody waits for.
  case interactive = 0
  /// Files and other bulk.
  case bulk = 1
}

/// What a payload is; the raw value is the type of the frame that carries it.
public enum PayloadType: UInt8, Sendable {
  case segment = 32
  case acknowledgement = 33
  case datagram = 34
  case reset = 35
}

/// Names one send for as long as the channel lives.
public struct MessageID: Hashable, Sendable {
  public let number: UInt64
  public init(number: UInt64) { self.number = number }
}

/// Why `send` took nothing.
public enum SendRefusal: Error, Equatable, Sendable {
  /// Back-pressure: the ring or the table of unfinished sends is full. Ask again after a completion.
  case full
  /// Longer than `ChannelLimits.messageBytesMax`.
  case tooLong
  /// The channel was closed.
  case closed
}

/// Why a send that was taken did not succeed. The message may or may not have arrived; never twice.
public enum SendFailure: Equatable, Sendable {
  /// One end began a new life, and the other has forgotten what it had received.
  case peerRestarted
  /// Nothing of the lane was acknowledged for the whole delivery deadline.
  case timedOut
  /// The owner closed the channel.
  case closed
}

/// The one end of one send.
public struct Completion: Equatable, Sendable {
  /// How a send ended.
  public enum Outcome: Equatable, Sendable {
    /// The other end's channel has acknowledged the message's last byte.
    case delivered
    case failed(SendFailure)
  }
  public let message: MessageID
  public let lane: Lane
  public let outcome: Outcome

  public init(message: MessageID, lane: Lane, outcome: Outcome) {
    self.message = message
    self.lane = lane
    self.outcome = outcome
  }
}

/// The message that would be taken next from a lane.
public struct PendingMessage: Equatable, Sendable {
  public let kind: UInt8
  public let lane: Lane
  public let byteCount: Int
}

/// A message that arrived, whole and in order.
public struct ReceivedMessage: Equatable, Sendable {
  public let kind: UInt8
  public let lane: Lane
  public let bytes: [UInt8]
}

/// What `nextFrame` wrote into the caller's buffer.
public struct OutgoingPayload: Equatable, Sendable {
  public let type: PayloadType
  /// Bytes written from the start of the buffer.
  public let byteCount: Int
  /// Sets the priority of the frame that carries it.
  public let lane: Lane
}

/// Why a payload from the network changed nothing.
public enum ChannelRefusal: Error, Equatable, Sendable {
  /// The bytes are not a legal payload.
  case malformed(PayloadRefusal)
  /// A segment or acknowledgement for another life of ours. The owner answers a segment with a `Reset`
  /// that names the epoch given here.
  case otherDestinationEpoch(UInt64)
  /// From a life of the other end that this channel does not know: an old one, or a new one. The owner who
  /// knows it for the newer calls `remoteRestarted` and hands the payload in again.
  case otherSourceEpoch(UInt64)
  /// The acknowledgement covers bytes that were never sent.
  case acknowledgesUnsent
  /// The stream announces a message longer than `ChannelLimits.messageBytesMax`, so that no later one can be found. The
  /// channel has begun again with a later epoch; the owner answers with a `Reset` that names the epoch given here.
  case messageTooLong(UInt64)
  /// A duplicate datagram, or one older than the replay window.
  case alreadyReceived
  /// The reset speaks of an epoch that this channel does not send to (any more).
  case staleReset
  /// The channel was closed.
  case closed
}

/// Counters of one lane since the channel was made.
public struct LaneStatistics: Equatable, Sendable {
  public var segmentsSent: UInt64 = 0
  public var segmentsRetransmitted: UInt64 = 0
  /// Stream bytes in sent segments, retransmissions included.
  public var bytesSent: UInt64 = 0
  public var bytesRetransmitted: UInt64 = 0
  public var acknowledgementsSent: UInt64 = 0
  /// Loss episodes, and retransmission timeouts.
  public var fastRecoveries: UInt64 = 0
  public var timeouts: UInt64 = 0
  /// Spurious timeouts, which were undone.
  public var spuriousTimeouts: UInt64 = 0
  public var windowProbes: UInt64 = 0
  public var segmentsReceived: UInt64 = 0
  /// Stream bytes that became available in order.
  public var bytesReceived: UInt64 = 0
  /// Segments that held nothing new.
  public var duplicatesReceived: UInt64 = 0
  /// Segments dropped because no byte fitted the window or no range was free.
  public var unplacedReceived: UInt64 = 0
  /// Smoothed round-trip time; zero before the first measurement.
  public var roundTripMicroseconds: UInt64 = 0
  /// The estimated delivery rate of the path.
  public var bytesPerSecond: UInt64 = 0
  /// The congestion window, and the bytes in flight.
  public var windowBytes: UInt64 = 0
  public var bytesInFlight: UInt64 = 0
  /// Memory of the two rings.
  public var ringBytes = 0
}

/// What an owner may choose about a channel.
public struct ChannelSettings: Equatable, Sendable {
  /// The most that a ring grows to; at least `ChannelLimits.ringBytesMin`, smaller values are raised to it.
  public var interactiveRingBytes = ChannelLimits.interactiveRingBytes
  public var bulkRingBytes = ChannelLimits.bulkRingBytes
  /// Time without progress after which unfinished sends fail.
  public var deliveryDeadline = ChannelLimits.deliveryDeadline
  public init() {}
}
