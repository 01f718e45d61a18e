/// The source addresses of the entries in a table of 64 slots. When the table is full, a new entry replaces an entry of
/// the address that occupies the most slots. The new entry is included in that count. So a machine with many keys
/// replaces its own entries and not the entries of other machines.
public struct SourceSlots {
  private var sources = FixedArray<64, UInt64>(repeating: 0)

  public init() {}

  /// The address of the entry in a slot.
  public subscript(slot: Int) -> UInt64 {
    get { sources[slot] }
    set { sources[slot] = newValue }
  }

  /// The number of slots that an address occupies. The new entry, whose address is `newcomer`, is counted as one slot.
  public func held(by source: UInt64, beside newcomer: UInt64) -> Int {
    var held = source == newcomer ? 1 : 0
    for slot in sources.indices where sources[slot] == source { held += 1 }
    return held
  }

  /// The largest number of slots that `held` counts for one address.
  public func most(beside newcomer: UInt64) -> Int {
    var most = 1
    for slot in sources.indices { most = max(most, held(by: sources[slot], beside: newcomer)) }
    return most
  }
}
