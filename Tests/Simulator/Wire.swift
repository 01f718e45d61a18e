import Primitives

/// The impairments of one direction of a wire. The impairments act below the links, until the time `until`.
struct Weather {
  var until = Instant.zero
  /// The rate of packets that are lost and retransmitted.
  var lossPerThousand: UInt64 = 0
  /// Whether losses come in bursts: half of the packets are lost for some milliseconds, and then none for a while.
  var isBursty = false
  var isInBurst = false
  var burstTurnsAt = Instant.zero
  var extraDelay = TimeSpan.milliseconds(0)
  /// The rate of pieces in which one byte is changed.
  var corruptPerThousand: UInt64 = 0
  /// The factor by which the wire is slower than its model.
  var slowness: UInt64 = 1
}

/// A medium that connects two machines: a cable, or two radios in range. Two machines may share several wires.
struct Wire {
  /// The current state of one direction of a wire.
  struct Direction {
    var isUp = true
    /// Nothing is transmitted or delivered before this time.
    var stalledUntil = Instant.zero
    /// The time at which all data sent so far has been transmitted.
    var busyUntil = Instant.zero
    var weather = Weather()
  }

  let ends: (Int, Int)
  var model: WireModel
  /// Whether discovery gives each end the id of the other end before a dial.
  let announcesID: Bool
  /// The number of the wire's broadcast domain, or 0 if it is in none.
  let domain: UInt32
  /// Whether the wire stays down after the faults.
  var staysDown = false
  private var directions = FixedArray<2, Direction>(repeating: Direction())

  init(ends: (Int, Int), model: WireModel, announcesID: Bool, domain: UInt32 = 0) {
    self.ends = ends
    self.model = model
    self.announcesID = announcesID
    self.domain = domain
  }

  /// The direction that starts at the end `side`.
  subscript(from side: Int) -> Direction {
    get { directions[side] }
    set { directions[side] = newValue }
  }

  /// Whether both directions are up, without which a handshake is impossible.
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

/// An authenticated byte stream over a wire, with both its directions.
struct Stream {
  struct End {
    let machine: Int
    /// The incarnation of the node that this end belongs to.
    let life: Int
    /// The slot of the link at this end. The slot is nil until the node is notified of the stream.
    var slot: Int?
    /// The numbers of bytes that the link has sent and received.
    var bytesOut: UInt64 = 0
    var bytesIn: UInt64 = 0
    /// Whether the node at this end closed the stream or was notified that it has ended.
    var isGone = false
  }

  /// Bytes that are transmitted together and arrive together.
  struct Piece {
    var leavesAt: Instant
    var arrivesAt: Instant
    var bytes: [UInt8]
    /// Whether a byte was changed in flight, so that the receiver's TLS ends the stream.
    var isCorrupt = false
  }

  /// The bytes in one direction that one end has sent and the other end has not received.
  struct Direction {
    private var pieces: [Piece] = []
    /// The indices of the first piece that has not arrived and of the first piece that is not transmitted.
    private var arrivals = 0
    private var departures = 0
    /// The number of bytes in the buffer below the sender's link, which are not transmitted yet.
    private(set) var bytesBelow = 0
    private(set) var lastArrival = Instant.zero
    /// Whether the sender waits for space in the buffer below its link.
    var isFull = false
    /// Whether the sender has sent its last byte and closed.
    var hasEnded = false
    /// Whether everything sent from now on is lost.
    var isDead = false

    var isEmpty: Bool { arrivals == pieces.count }
    var first: Piece? { isEmpty ? nil : pieces[arrivals] }
    /// The time at which the buffer has space again, or nil if it is empty. A dead direction never transmits.
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

    /// Removes the pieces transmitted by `now` from the buffer below the sender's link.
    mutating func depart(_ now: Instant) {
      if isDead { return }
      while departures < pieces.count, pieces[departures].leavesAt <= now {
        bytesBelow -= pieces[departures].bytes.count
        departures += 1
      }
    }

    /// The number of bytes that were sent and have not arrived.
    var bytesUnderWay: Int { pieces[arrivals...].reduce(0) { $0 + $1.bytes.count } }
  }

  let wire: Int
  /// The end of the machine that dialled, followed by the end of the other machine.
  var ends: (End, End)
  /// The wire's side of the machine that dialled.
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
  /// The direction that starts at the stream's end `side`.
  subscript(from side: Int) -> Direction {
    _read { yield directions[side] }
    _modify { yield &directions[side] }
  }

  /// Whether everything sent from now on is lost in both directions.
  var isDead: Bool {
    get { directions[0].isDead && directions[1].isDead }
    set {
      directions[0].isDead = newValue
      directions[1].isDead = newValue
    }
  }

  /// The wire's side for a side of the stream.
  func wireSide(_ side: Int) -> Int { side == 0 ? diallingSide : 1 - diallingSide }
}
