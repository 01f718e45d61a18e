/// The addresses that share a table of 64 places. In a full table a place of the address with most gives way, and the
/// newcomer counts: a machine with many keys replaces its own entries and leaves others theirs.
public struct SourcePlaces {
  private var sources = FixedArray<64, UInt64>(repeating: 0)

  public init() {}

  /// The address that holds a place.
  public subscript(place: Int) -> UInt64 {
    get { sources[place] }
    set { sources[place] = newValue }
  }

  /// The places of an address, one of a newcomer included.
  public func held(by source: UInt64, beside newcomer: UInt64) -> Int {
    var held = source == newcomer ? 1 : 0
    for place in sources.indices where sources[place] == source { held += 1 }
    return held
  }

  /// The most places of one address, as `held` counts them.
  public func most(beside newcomer: UInt64) -> Int {
    var most = 1
    for place in sources.indices { most = max(most, held(by: sources[place], beside: newcomer)) }
    return most
  }
}
