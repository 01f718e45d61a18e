/// The source addresses of the entries in a table of 64 places. In a full table, an entry of the address with the most
/// places is replaced; the newcomer counts. A machine with many keys thus replaces its own entries and not those of
/// others.
public struct SourcePlaces {
  private var sources = FixedArray<64, UInt64>(repeating: 0)

  public init() {}

  /// The address that occupies a place.
  public subscript(place: Int) -> UInt64 {
    get { sources[place] }
    set { sources[place] = newValue }
  }

  /// The number of places of an address, including the newcomer's.
  public func held(by source: UInt64, beside newcomer: UInt64) -> Int {
    var held = source == newcomer ? 1 : 0
    for place in sources.indices where sources[place] == source { held += 1 }
    return held
  }

  /// The largest number of places of one address, as `held` counts them.
  public func most(beside newcomer: UInt64) -> Int {
    var most = 1
    for place in sources.indices { most = max(most, held(by: sources[place], beside: newcomer)) }
    return most
  }
}
