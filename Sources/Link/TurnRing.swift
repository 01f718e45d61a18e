import Primitives

/// A record that takes turns with others in a `TurnRing`.
protocol TakesTurns {
  /// The next record in its ring.
  var next: UInt16 { get set }
  /// The bytes that the record may still send in its turn.
  var deficit: Int32 { get set }
}

/// Records of a table that take turns by deficit round robin (Shreedhar and Varghese, 1995). Each turn lets a record
/// send `quantum` more bytes.
struct TurnRing {
  static let none = UInt16.max
  /// The predecessor of the record whose turn it is.
  private var last = Self.none

  var isEmpty: Bool { last == Self.none }

  /// The record whose turn it is. The ring must not be empty.
  func turn<Record: TakesTurns>(in table: Table<Record, UInt16>) -> UInt16 { table[last].next }

  /// The first record that `matches`, starting with the last in turn order.
  func first<Record: TakesTurns>(in table: Table<Record, UInt16>, where matches: (Record) -> Bool) -> UInt16? {
    if isEmpty { return nil }
    var number = last
    repeat {
      if matches(table[number]) { return number }
      number = table[number].next
    } while number != last
    return nil
  }

  /// Advances the turn until a record may send its next frame, of `byteCount` bytes, and returns that record. The ring
  /// must not be empty.
  mutating func ready<Record: TakesTurns>(
    in table: Table<Record, UInt16>, quantum: Int, byteCount: (UInt16) -> Int
  ) -> UInt16 {
    while true {
      let number = table[last].next
      if Int(table[number].deficit) >= byteCount(number) { return number }
      last = number
      table[table[number].next].deficit += Int32(quantum)
    }
  }

  /// Adds a record. Its turn comes after those of all others.
  mutating func enter<Record: TakesTurns>(_ number: UInt16, in table: Table<Record, UInt16>, quantum: Int) {
    if isEmpty {
      table[number].next = number
      table[number].deficit = Int32(quantum)
    } else {
      table[number].next = table[last].next
      table[last].next = number
    }
    last = number
  }

  /// Removes a record. If it was this record's turn, the next one's begins.
  mutating func leave<Record: TakesTurns>(_ number: UInt16, in table: Table<Record, UInt16>, quantum: Int) {
    let following = table[number].next
    if following == number {
      last = Self.none
      return
    }
    var before = last
    while table[before].next != number { before = table[before].next }
    table[before].next = following
    if before == last { table[following].deficit += Int32(quantum) }
    if number == last { last = before }
  }
}
