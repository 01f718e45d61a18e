import Primitives

/// One of two ordered streams between two nodes. Because of them a chat message never waits behind a file. The raw
/// value is sent on the wire.
public enum Lane: UInt8, Sendable, CaseIterable {
  /// Messages that a person waits for.
  case interactive = 0
  /// Files and other bulk data.
  case bulk = 1
}

/// The kind of a payload. The raw value is the type of the frame that carries it.
public enum PayloadType: UInt8, Sendable {
  case segment = 32
  case acknowledgement = 33
  case datagram = 34
  case reset = 35
  case joined = 38
}

/// Identifies one send during the lifetime of the channel.
public struct MessageID: Hashable, Sendable {
  public let number: UInt64
  public init(number: UInt64) { self.number = number }
}

/// Why `send` refused a message.
public enum SendRefusal: Error, Equatable, Sendable {
  /// Back-pressure: the ring or the table of unfinished sends is full. Retry after a completion.
  case full
  /// Longer than `ChannelLimits.messageBytesMax`.
  case tooLong
  /// The channel was closed.
  case closed
}

/// Why an accepted send failed. The message may have arrived, but never twice.
public enum SendFailure: Equatable, Sendable {
  /// One end restarted or began a new epoch, so its record of received bytes is lost.
  case peerRestarted
  /// Nothing of the lane was acknowledged within the delivery deadline.
  case timedOut
  /// The owner closed the channel.
  case closed
}

/// The result of one send.
public struct Completion: Equatable, Sendable {
  /// Delivered, or failed with a reason.
  public enum Outcome: Equatable, Sendable {
    /// The other end has acknowledged the last byte of the message.
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

/// The message at the head of a lane.
public struct PendingMessage: Equatable, Sendable {
  public let kind: UInt8
  public let lane: Lane
  public let byteCount: Int
}

/// A complete message, in order.
public struct ReceivedMessage: Equatable, Sendable {
  public let kind: UInt8
  public let lane: Lane
  public let bytes: [UInt8]
}

/// The payload that `nextFrame` wrote into the caller's buffer.
public struct OutgoingPayload: Equatable, Sendable {
  public let type: PayloadType
  /// Bytes written from the start of the buffer.
  public let byteCount: Int
  /// The lane. It determines the priority of the frame.
  public let lane: Lane
}

/// Why a payload from the network was rejected.
public enum ChannelRefusal: Error, Equatable, Sendable {
  /// The bytes are not a valid payload.
  case malformed(PayloadRefusal)
  /// The segment or acknowledgement is addressed to another epoch of this node. The owner answers a segment with a
  /// `Reset` that names this epoch.
  case otherDestinationEpoch(UInt64)
  /// The payload was sent in an epoch of the other end that is older or newer than the one this channel uses. If the
  /// owner knows that it is newer, it calls `remoteRestarted` and passes the payload again.
  case otherSourceEpoch(UInt64)
  /// The acknowledgement covers bytes that were never sent.
  case acknowledgesUnsent
  /// The stream announces a message longer than `ChannelLimits.messageBytesMax`, so later messages cannot be found. The
  /// channel has begun again with a later epoch. The owner answers with a `Reset` that names this epoch.
  case messageTooLong(UInt64)
  /// A duplicate datagram, or one older than the replay window.
  case alreadyReceived
  /// The reset names an epoch to which this channel does not send, or no longer sends.
  case staleReset
  /// The channel was closed.
  case closed
}

/// Counters of one lane since the channel was created.
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
  /// Spurious timeouts that were undone.
  public var spuriousTimeouts: UInt64 = 0
  public var windowProbes: UInt64 = 0
  public var segmentsReceived: UInt64 = 0
  /// Stream bytes that became available in order.
  public var bytesReceived: UInt64 = 0
  /// Segments without a new byte.
  public var duplicatesReceived: UInt64 = 0
  /// Segments dropped because they were outside the window, or because the table of ranges was full.
  public var unplacedReceived: UInt64 = 0
  /// Smoothed round-trip time; zero before the first measurement.
  public var roundTripMicroseconds: UInt64 = 0
  /// The estimated delivery rate of the path.
  public var bytesPerSecond: UInt64 = 0
  /// The congestion window, and the bytes in flight.
  public var windowBytes: UInt64 = 0
  public var bytesInFlight: UInt64 = 0
  /// Memory of the lane's send and receive rings.
  public var ringBytes = 0
}

/// Options that the owner of a channel may set.
public struct ChannelSettings: Equatable, Sendable {
  /// The maximum sizes of the rings, in bytes. A value below `ChannelLimits.ringBytesMin` is raised to it.
  public var interactiveRingBytes = ChannelLimits.interactiveRingBytes
  public var bulkRingBytes = ChannelLimits.bulkRingBytes
  /// The time without progress after which unfinished sends fail.
  public var deliveryDeadline = ChannelLimits.deliveryDeadline
  public init() {}
}
