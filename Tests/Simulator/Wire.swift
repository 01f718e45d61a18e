import Primitives

/// Something two machines see each other over: a cable, a radio in range. A pair may have several.
struct Wire {
  let ends: (Int, Int)
  let bearer: BearerKind
  /// Discovery tells the id of the other end before anybody dialled.
  let announcesID: Bool
  /// Bytes take this long from end to end.
  let delay: (least: TimeSpan, most: TimeSpan)
  /// Bytes under way in one direction of one stream before the sender has to wait.
  let windowBytes: Int
  var isUp = true
  /// Nothing arrives before.
  var stalledUntil = Instant.zero

  func other(_ machine: Int) -> Int { machine == ends.0 ? ends.1 : ends.0 }
}

/// One authenticated byte stream over a wire, both directions.
struct Stream {
  struct End {
    let machine: Int
    /// The machine's life that the stream belongs to.
    let life: Int
    /// The link slot; nil before the end's node was told of the stream.
    var slot: Int?
    /// The node of this end was told that the stream is gone, or said so itself.
    var isGone = false
  }

  /// Bytes that one end sent and the other has not received.
  struct Direction {
    var pieces: [(at: Instant, bytes: [UInt8])] = []
    var byteCount = 0
    var lastArrival = Instant.zero
    /// The sender found no room and waits for some.
    var isFull = false
    /// The sender has sent its last byte.
    var hasEnded = false
  }

  let wire: Int
  /// The end that dialled, and the one that was dialled.
  var ends: (End, End)
  var directions: (Direction, Direction) = (Direction(), Direction())
  /// Nothing sent from now on arrives.
  var isDead = false

  subscript(end side: Int) -> End {
    get { side == 0 ? ends.0 : ends.1 }
    set { if side == 0 { ends.0 = newValue } else { ends.1 = newValue } }
  }
  /// What end `side` sends.
  subscript(from side: Int) -> Direction {
    get { side == 0 ? directions.0 : directions.1 }
    set { if side == 0 { directions.0 = newValue } else { directions.1 = newValue } }
  }
}
