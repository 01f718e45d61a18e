import Primitives

/// Impairments of one direction of a wire, below any link.
struct Weather {
  var until = Instant.zero
  /// Packets that are lost and retransmitted.
  var lossPerThousand: UInt64 = 0
  /// Whether half of all packets are lost for a few milliseconds, and then none for a while.
  var isBursty = false
  var isInBurst = false
  var burstTurnsAt = Instant.zero
  var extraDelay = TimeSpan.milliseconds(0)
  /// Pieces of a stream with a changed byte.
  var corruptPerThousand: UInt64 = 0
  /// The divisor of the rate.
  var slowness: UInt64 = 1
}

/// A medium that connects two machines: a cable, or radios in range. A pair may have several wires.
struct Wire {
  /// The current state of one direction of a wire.
  struct Direction {
    var isUp = true
    /// Nothing leaves or arrives before this time.
    var stalledUntil = Instant.zero
    /// The time by which everything sent so far has left.
    var busyUntil = Instant.zero
    var weather = Weather()
  }

  let ends: (Int, Int)
  var model: WireModel
  /// Whether discovery learns the id of the other end before anybody dials.
  let announcesID: Bool
  /// The broadcast domain of the wire, or 0.
  let domain: UInt32
  /// Whether the wire stays down when the faults are over.
  var staysDown = false
  private var directions = FixedArray<2, Direction>(repeating: Direction())

  init(ends: (Int, Int), model: WireModel, announcesID: Bool, domain: UInt32 = 0) {
    self.ends = ends
    self.model = model
    self.announcesID = announcesID
    self.domain = domain
  }

  /// The direction from end `side`.
  subscript(from side: Int) -> Direction {
    get { directions[side] }
    set { directions[side] = newValue }
  }

  /// Whether both directions are up, so that a handshake is possible.
  var isUp: Bool {
    get { directions[0].isUp && directions[1].isUp }
    set {
      directions[0].isUp = newValue
      directions[1].isUp = newValue
    }
  }

  func other(_ machine: Int) -> Int { machine == ends.0 ? ends.1 : ends.0 }
  func side(_ machine: Int) -> Int { machine == ends.0 ? 0 : 1 }
  func joins(_ one: Int, _ other: Int) -> Bool { ends == (one, other) || ends == (other, one) }
}

/// One authenticated byte stream over a wire, in both directions.
struct Stream {
  struct End {
    let machine: Int
    /// The incarnation of the machine that the stream belongs to.
    let life: Int
    /// The link slot, or nil until the node of this end is notified of the stream.
    var slot: Int?
    /// The bytes that the link sent and received.
    var bytesOut: UInt64 = 0
    var bytesIn: UInt64 = 0
    /// Whether the node of this end was notified that the stream is gone, or closed it.
    var isGone = false
  }

  /// Bytes that leave the sender and arrive together.
  struct Piece {
    var leavesAt: Instant
    var arrivesAt: Instant
    var bytes: [UInt8]
    /// Whether the piece was changed in flight; then the receiver's TLS ends the stream.
    var isCorrupt = false
  }

  /// The bytes that one end sent and the other has not received.
  struct Direction {
    private var pieces: [Piece] = []
    /// The first piece that has not arrived, and the first that has not left.
    private var arrivals = 0
    private var departures = 0
    /// The bytes that were handed down and have not left.
    private(set) var bytesBelow = 0
    private(set) var lastArrival = Instant.zero
    /// Whether the sender waits for room.
    var isFull = false
    /// Whether the sender has sent its last byte.
    var hasEnded = false
    /// Whether nothing sent from now on leaves or arrives.
    var isDead = false

    var isEmpty: Bool { arrivals == pieces.count }
    var first: Piece? { isEmpty ? nil : pieces[arrivals] }
    /// The time at which there is room again, if anything leaves at all.
    var nextDeparture: Instant? { departures == pieces.count ? nil : pieces[departures].leavesAt }

    mutating func append(_ piece: Piece) {
      pieces.append(piece)
      bytesBelow += piece.bytes.count
      lastArrival = max(lastArrival, piece.arrivesAt)
    }

    mutating func removeFirst() {
      pieces[arrivals].bytes = []
      arrivals += 1
      if arrivals >= 64, arrivals == min(arrivals, departures) {
        pieces.removeFirst(arrivals)
        departures -= arrivals
        arrivals = 0
      }
    }

    /// Removes the pieces that had left by `now` from the bytes below the sender's link.
    mutating func depart(_ now: Instant) {
      if isDead { return }
      while departures < pieces.count, pieces[departures].leavesAt <= now {
        bytesBelow -= pieces[departures].bytes.count
        departures += 1
      }
    }

    /// The bytes that were handed down and have not arrived.
    var bytesUnderWay: Int { pieces[arrivals...].reduce(0) { $0 + $1.bytes.count } }
  }

  let wire: Int
  /// The end that dialled, followed by the other end.
  var ends: (End, End)
  /// The side of the wire on which the dialling end is.
  let diallingSide: Int
  private var directions = [Direction(), Direction()]

  init(wire: Int, ends: (End, End), diallingSide: Int) {
    self.wire = wire
    self.ends = ends
    self.diallingSide = diallingSide
  }

  subscript(end side: Int) -> End {
    get { side == 0 ? ends.0 : ends.1 }
    set { if side == 0 { ends.0 = newValue } else { ends.1 = newValue } }
  }
  /// The direction from end `side`.
  subscript(from side: Int) -> Direction {
    _read { yield directions[side] }
    _modify { yield &directions[side] }
  }

  /// Whether nothing sent from now on leaves or arrives, in both directions.
  var isDead: Bool {
    get { directions[0].isDead && directions[1].isDead }
    set {
      directions[0].isDead = newValue
      directions[1].isDead = newValue
    }
  }

  /// The side of the wire for a side of the stream.
  func wireSide(_ side: Int) -> Int { side == 0 ? diallingSide : 1 - diallingSide }
}
