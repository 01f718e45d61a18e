import Primitives

/// A record that takes turns with others in a `TurnRing`.
protocol TakesTurns {
  /// The next record after this record in its ring.
  var next: UInt16 { get set }
  /// The number of bytes that the record may still send in its turn.
  var deficit: Int32 { get set }
}

/// A ring of table records that take turns by deficit round robin (Shreedhar and Varghese, 1995). In each turn a record
/// may send `quantum` more bytes.
struct TurnRing {
  static let none = UInt16.max
  /// The record before the one whose turn it is.
  private var last = Self.none

  var isEmpty: Bool { last == Self.none }

  /// The record whose turn it is. The ring must not be empty.
  func turn<Record: TakesTurns>(in table: Table<Record, UInt16>) -> UInt16 { table[last].next }

  /// The first record for which `matches` returns true; nil if there is none. The search begins with the record whose
  /// turn comes last.
  func first<Record: TakesTurns>(in table: Table<Record, UInt16>, where matches: (Record) -> Bool) -> UInt16? {
    if isEmpty { return nil }
    var number = last
    repeat {
      if matches(table[number]) { return number }
      number = table[number].next
    } while number != last
    return nil
  }

  /// Advances the turn until a record may send its next frame, and returns that record. `byteCount` returns the length
  /// of a record's next frame. The ring must not be empty.
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

  /// Adds a record, whose turn comes after the turns of all other records.
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

  /// Removes a record. If this record had the turn, the turn of the next record begins.
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
