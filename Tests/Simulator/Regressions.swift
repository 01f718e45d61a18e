/// A network seed that once failed, reduced to the options that still caused the failure. Regressions are never
/// removed.
public struct Regression: Sendable {
  /// The defect, as a sentence.
  public let name: String
  public let options: Options

  public init(_ name: String, seed: UInt64, faults: [Fault]? = nil, nodeCount: Int? = nil, faultSeconds: UInt64? = nil)
  {
    self.name = name
    options = Options(seed: seed).reduced(faults: faults, nodeCount: nodeCount, faultSeconds: faultSeconds)
  }

  /// The regressions of networks. `make sim` prints the line to add here when a seed fails.
  public static let all: [Regression] = [
    Regression(
      "acknowledgements under way while the reader restarts", seed: 1161,
      faults: [
        .cut, .stall, .darkness, .oneWay, .clog, .delay, .corrupt, .handOver, .freeze, .noReader, .frameReorder,
      ], nodeCount: 2, faultSeconds: 8),
    Regression("the cheapest way has more hops than a frame", seed: 8585, faults: [], nodeCount: 44, faultSeconds: 1),
    Regression(
      "a machine that stays away has not read what was delivered to it", seed: 498,
      faults: [.discoveryFlap, .slowReader, .alter], nodeCount: 5, faultSeconds: 8),
    Regression("two leaves of a crowded room that answer each other are never there together", seed: 33_000_908),
    Regression("a peer that is reached through the liar gives way in a full table as its nodes do", seed: 33_013_696),
    Regression("a newcomer behind the liar is unknown to a full table, as the liar's nodes are", seed: 35_001_146),
    Regression("a node tells its neighbour all again when one of two machines with one key has left", seed: 35_002_308),
    Regression("two leaves that are together for seconds wait out the pause before a session", seed: 35_005_648),
    Regression("a machine to which the newcomer's host has too many hops does not know the newcomer", seed: 35_006_152),
    Regression("no message crosses the liar to a node that full tables have evicted", seed: 36_001_596),
    Regression("a node that was evicted is asked for although the liar's link has gone", seed: 36_002_996),
    Regression("an advertisement is sent in the moment in which it expires", seed: 36_006_416),
    Regression("the first message over a channel that a victim evicted fails", seed: 36_008_272),
    Regression("pauses that go on doubling leave messages in a crowded room undelivered", seed: 37_007_548),
    Regression("two leaves that are connected in turn lose their handshake when one is parked", seed: 37_002_008),
    Regression("two leaves far apart in the order of turns are never connected together", seed: 38_001_988),
    Regression("a message fails while its handshake advances from turn to turn", seed: 39_000_248),
    Regression("two parked leaves wait for each other's flight, and nobody calls them", seed: 42_002_468),
    Regression("a newcomer is asked of a neighbour that a full table kept from knowing it", seed: 45_003_496),
    Regression("an advertisement whose age a liar raised expires, and is told again", seed: 33_013_116),
    Regression("a machine behind the liar's link gets no place, and no message, beside it", seed: 33_010_352),
  ]
}

/// A session scenario that once failed; regressions are never removed.
public struct StoryRegression: Sendable {
  public let name: String
  public let seed: UInt64

  /// Scenarios of a few nodes that `Story` of SessionStories runs one event at a time, without a network.
  public static let steps: [StoryRegression] = [
    StoryRegression(name: "who was ejected does not tell the others for a founder that is gone", seed: 1126),
    StoryRegression(name: "two in both of two merged sessions keep other meetings: no stream comes", seed: 1411),
    StoryRegression(name: "two in both of two merged sessions keep other meetings: no room is found", seed: 2567),
    StoryRegression(name: "two in both of two merged sessions keep other meetings, beside a liar", seed: 3146),
    StoryRegression(name: "two in both of two merged sessions keep other meetings, and one more session", seed: 4864),
    StoryRegression(name: "two in both of two merged sessions keep other meetings, with four places", seed: 8028),
    StoryRegression(name: "a merge is told late, and to a founder that has ejected the member not at all", seed: 5681),
    StoryRegression(name: "a merge is taken of which no member is known", seed: 6868),
    StoryRegression(name: "a member whose founder has left while it was cut off connects to it for ever", seed: 1898),
    StoryRegression(name: "what becomes known while two meet is never told", seed: 9824),
    StoryRegression(name: "a table for one of two merged sessions goes to the older one", seed: 41_002_334),
    StoryRegression(name: "a table for one of two merged sessions goes to the older one, twice", seed: 41_002_940),
    StoryRegression(name: "a digest that was sent before cancels the table that a member lacks", seed: 35_003_244),
    StoryRegression(name: "an answer offers a session that has become another one", seed: 47_000_309),
    StoryRegression(name: "a digest that is sent meanwhile cancels the table that a member lacks", seed: 474),
  ]

  /// Scenarios that `SessionStory` runs in a simulated network with faults.
  public static let networks: [StoryRegression] = [
    StoryRegression(name: "a route back has more hops than a frame", seed: 3758),
    StoryRegression(name: "an invitation stands when its node is alone", seed: 2835),
    StoryRegression(name: "two parts of a session of which nobody knows both", seed: 6040),
    StoryRegression(name: "a meet comes to who does not know the session that it names", seed: 1982),
    StoryRegression(name: "a farewell that was lost is said again", seed: 3615),
    StoryRegression(name: "who restarted forgets a member that is one by a ticket that it signed before", seed: 2021),
    StoryRegression(name: "a member that left is still there for who is no peer of it", seed: 3965),
    StoryRegression(name: "a farewell does not end the ticket of a former life", seed: 7591),
    StoryRegression(name: "a table that begins to wait for its check is due in another wake-up", seed: 214),
    StoryRegression(name: "a route is found while the timer of a channel is due", seed: 33_011_396),
    StoryRegression(name: "a merge shows a ticket of a member that has left, and stays connected", seed: 46_001_540),
    StoryRegression(name: "the cheapest of the short paths leads relays on to a longer one", seed: 37_004_355),
    StoryRegression(name: "a message behind one that is being checked is acknowledged first", seed: 33_010_023),
  ]
}
