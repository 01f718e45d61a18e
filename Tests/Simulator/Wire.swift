import Primitives

/// Impairments of one direction of a wire, below any link.
struct Weather {
  var until = Instant.zero
  /// Packets lost and sent again.
  var lossPerThousand: UInt64 = 0
  /// Half of all packets are lost for a few milliseconds, then none for a while.
  var isBursty = false
  var isInBurst = false
  var burstTurnsAt = Instant.zero
  var extraDelay = TimeSpan.milliseconds(0)
  /// Pieces of a stream with a changed byte.
  var corruptPerThousand: UInt64 = 0
  /// The rate is divided by it.
  var slowness: UInt64 = 1
}

/// A medium that connects two machines: a cable, a radio in range. A pair may have several.
struct Wire {
  /// The present state of one direction of a wire.
  struct Direction {
    var isUp = true
    /// Nothing leaves or arrives before this time.
    var stalledUntil = Instant.zero
    /// What was sent so far has left by then.
    var busyUntil = Instant.zero
    var weather = Weather()
  }

  let ends: (Int, Int)
  var model: WireModel
  /// Discovery tells the id of the other end before anybody dialled.
  let announcesID: Bool
  /// The broadcast domain that it is a part of; 0 for none.
  let domain: UInt32
  /// The wire stays down when the faults are over.
  var staysDown = false
  private var directions = FixedArray<2, Direction>(repeating: Direction())

  init(ends: (Int, Int), model: WireModel, announcesID: Bool, domain: UInt32 = 0) {
    self.ends = ends
    self.model = model
    self.announcesID = announcesID
    self.domain = domain
  }

  /// What end `side` sends.
  subscript(from side: Int) -> Direction {
    get { directions[side] }
    set { directions[side] = newValue }
  }

  /// Both directions are up: a handshake is possible.
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

/// One authenticated byte stream over a wire, both directions.
struct Stream {
  struct End {
    let machine: Int
    /// The machine's life that the stream belongs to.
    let life: Int
    /// The link slot; nil before the end's node was told of the stream.
    var slot: Int?
    /// Bytes that its link gave, and was given.
    var bytesOut: UInt64 = 0
    var bytesIn: UInt64 = 0
    /// The node of this end was told that the stream is gone, or said so itself.
    var isGone = false
  }

  /// Bytes that leave the sender and arrive together.
  struct Piece {
    var leavesAt: Instant
    var arrivesAt: Instant
    var bytes: [UInt8]
    /// Changed on the way: the receiver's TLS ends the stream.
    var isCorrupt = false
  }

  /// Bytes that one end sent and the other has not received.
  struct Direction {
    private var pieces: [Piece] = []
    /// The first piece that has not arrived, and the first that has not left.
    private var arrivals = 0
    private var departures = 0
    /// Bytes handed down that have not left.
    private(set) var bytesBelow = 0
    private(set) var lastArrival = Instant.zero
    /// The sender found no room and waits for some.
    var isFull = false
    /// The sender has sent its last byte.
    var hasEnded = false
    /// Nothing sent from now on leaves or arrives.
    var isDead = false

    var isEmpty: Bool { arrivals == pieces.count }
    var first: Piece? { isEmpty ? nil : pieces[arrivals] }
    /// When there will be room again, provided anything leaves at all.
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

    /// What had left by `now` is no longer below the sender's link.
    mutating func depart(_ now: Instant) {
      if isDead { return }
      while departures < pieces.count, pieces[departures].leavesAt <= now {
        bytesBelow -= pieces[departures].bytes.count
        departures += 1
      }
    }

    /// Bytes that have been handed down and not arrived.
    var bytesUnderWay: Int { pieces[arrivals...].reduce(0) { $0 + $1.bytes.count } }
  }

  let wire: Int
  /// The end that dialled, and the one that was dialled.
  var ends: (End, End)
  /// Which side of the wire the dialling end is.
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
  /// What end `side` sends.
  subscript(from side: Int) -> Direction {
    _read { yield directions[side] }
    _modify { yield &directions[side] }
  }

  /// Nothing sent from now on leaves or arrives, in either direction.
  var isDead: Bool {
    get { directions[0].isDead && directions[1].isDead }
    set {
      directions[0].isDead = newValue
      directions[1].isDead = newValue
    }
  }

  /// The wire's side that the stream's `side` is.
  func wireSide(_ side: Int) -> Int { side == 0 ? diallingSide : 1 - diallingSide }
}
