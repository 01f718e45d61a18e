import Primitives

/// One of the two ordered streams of messages between two nodes. With two streams, a chat message never waits behind a
/// file. The raw value is sent on the wire.
public enum Lane: UInt8, Sendable, CaseIterable {
  /// Messages that a person waits for.
  case interactive = 0
  /// Files and other bulk data.
  case bulk = 1
}

/// The kind of a payload. The raw value is the frame type of the payload.
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
public enum SendError: Error, Equatable, Sendable {
  /// Back-pressure: the ring or the table of unfinished sends is full. Retry after a completion.
  case full
  /// The message is longer than `ChannelLimits.messageBytesMax`.
  case tooLong
  /// The channel was closed.
  case closed
}

/// Why an accepted send failed. The message of a failed send may have arrived once, but never twice.
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
  /// The outcome of a send: delivered, or failed with a reason.
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

/// A description of the next complete message of a lane.
public struct PendingMessage: Equatable, Sendable {
  public let kind: UInt8
  public let lane: Lane
  public let byteCount: Int
}

/// A complete message that was received in the order of its lane.
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
  /// The lane of the payload. The lane determines the priority of the frame.
  public let lane: Lane
}

/// Why a payload from the network was rejected.
public enum ChannelError: Error, Equatable, Sendable {
  /// The bytes are not a valid payload.
  case malformed(PayloadError)
  /// The payload is addressed to another epoch of this node, which is the associated value. The owner replies to a
  /// segment with a `Reset` whose `meantEpoch` is that epoch.
  case otherDestinationEpoch(UInt64)
  /// The payload was sent in another epoch of the other end than the known one. The associated value is the epoch in
  /// the payload. If that epoch is newer, the owner calls `remoteRestarted` and passes the payload again.
  case otherSourceEpoch(UInt64)
  /// The acknowledgement covers bytes that were never sent.
  case acknowledgesUnsent
  /// The stream announces a message longer than `ChannelLimits.messageBytesMax`, so the start of the next message is
  /// unknown. The channel has begun again in a later local epoch. The owner replies with a `Reset` whose `meantEpoch`
  /// is the associated value: the former local epoch.
  case messageTooLong(UInt64)
  /// The datagram is a duplicate, or its number is older than the replay window.
  case alreadyReceived
  /// The `meantEpoch` of the reset is not the epoch to which this channel sends now.
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
  /// Losses that acknowledgements revealed while no other loss was being repaired.
  public var fastRecoveries: UInt64 = 0
  /// The number of retransmission timeouts.
  public var timeouts: UInt64 = 0
  /// The number of spurious timeouts that were undone.
  public var spuriousTimeouts: UInt64 = 0
  public var windowProbes: UInt64 = 0
  public var segmentsReceived: UInt64 = 0
  /// Stream bytes that became available in order.
  public var bytesReceived: UInt64 = 0
  /// The number of received segments without a new byte.
  public var duplicatesReceived: UInt64 = 0
  /// The number of segments dropped because they were outside the window, or because the table of ranges was full.
  public var unplacedReceived: UInt64 = 0
  /// Smoothed round-trip time; zero before the first measurement.
  public var roundTripMicroseconds: UInt64 = 0
  /// The estimated delivery rate of the path.
  public var bytesPerSecond: UInt64 = 0
  /// The congestion window, in bytes.
  public var windowBytes: UInt64 = 0
  /// Bytes believed to be in flight ("pipe" in RFC 6675).
  public var bytesInFlight: UInt64 = 0
  /// Memory of the lane's send and receive rings, in bytes.
  public var ringBytes = 0
}

/// Options that the owner of a channel may set.
public struct ChannelSettings: Equatable, Sendable {
  /// The maximum size of each ring of the interactive lane, in bytes. A value below `ChannelLimits.ringBytesMin` is
  /// raised to that size.
  public var interactiveRingBytes = ChannelLimits.interactiveRingBytes
  /// The maximum size of each ring of the bulk lane, in bytes. A value below `ChannelLimits.ringBytesMin` is raised to
  /// that size.
  public var bulkRingBytes = ChannelLimits.bulkRingBytes
  /// The time without progress after which unfinished sends fail.
  public var deliveryDeadline = ChannelLimits.deliveryDeadline
  public init() {}
}
