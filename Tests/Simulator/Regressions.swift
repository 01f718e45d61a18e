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
      "acknowledgements are in flight while the reader restarts", seed: 1161,
      faults: [
        .cut, .stall, .darkness, .oneWay, .clog, .delay, .corrupt, .handOver, .freeze, .noReader, .frameReorder,
      ], nodeCount: 2, faultSeconds: 8),
    Regression(
      "the cheapest path has more hops than a frame can travel", seed: 8585, faults: [], nodeCount: 44, faultSeconds: 1),
    Regression(
      "a machine that stays down has not read a delivered message", seed: 498,
      faults: [.discoveryFlap, .slowReader, .alter], nodeCount: 5, faultSeconds: 8),
    Regression(
      "two leaves of a crowded room that answer each other are never connected at the same time", seed: 33_000_908),
    Regression(
      "a peer reached through the hostile relay is evicted from a full table like the relay's nodes", seed: 33_013_696),
    Regression(
      "a newcomer behind the hostile relay gets no slot in a full table, like the relay's nodes", seed: 35_001_146),
    Regression(
      "a node sends all advertisements again when one of two machines with one key has left", seed: 35_002_308),
    Regression("two leaves that are connected for seconds only wait for the pause before a session", seed: 35_005_648),
    Regression("a machine too many hops from the newcomer's host does not know the newcomer", seed: 35_006_152),
    Regression("no message crosses the hostile relay to a node that full tables have evicted", seed: 36_001_596),
    Regression("an evicted node is requested although the hostile relay's link is closed", seed: 36_002_996),
    Regression("an advertisement is sent at the instant of its expiry", seed: 36_006_416),
    Regression("the first message over a channel that a victim evicted fails", seed: 36_008_272),
    Regression("endlessly doubling pauses leave messages in a crowded room undelivered", seed: 37_007_548),
    Regression("two leaves that are connected in turn lose their handshake when one is parked", seed: 37_002_008),
    Regression("two leaves far apart in the order of turns are never connected at the same time", seed: 38_001_988),
    Regression("a message fails while its handshake advances from turn to turn", seed: 39_000_248),
    Regression("two parked leaves wait for each other's handshake messages, and are never dialled", seed: 42_002_468),
    Regression("a newcomer is requested from a neighbour whose full table does not contain it", seed: 45_003_496),
    Regression("an advertisement whose age a hostile relay raised expires, and is sent again", seed: 33_013_116),
    Regression(
      "a machine behind the hostile node's link gets no slot and no message during the attack", seed: 33_010_352),
  ]
}

/// A session scenario that once failed; regressions are never removed.
public struct StoryRegression: Sendable {
  public let name: String
  public let seed: UInt64

  /// Scenarios of a few nodes that `Story` of SessionStories runs one event at a time, without a network.
  public static let steps: [StoryRegression] = [
    StoryRegression(name: "an ejected member does not notify the others in place of a founder that left", seed: 1126),
    StoryRegression(
      name: "two members of both merged sessions keep different handshakes: no stream arrives", seed: 1411),
    StoryRegression(
      name: "two members of both merged sessions keep different handshakes: no room is found", seed: 2567),
    StoryRegression(
      name: "two members of both merged sessions keep different handshakes, with a malicious member", seed: 3146),
    StoryRegression(
      name: "two members of both merged sessions keep different handshakes, with a third session", seed: 4864),
    StoryRegression(name: "two members of both merged sessions keep different handshakes, with four slots", seed: 8028),
    StoryRegression(name: "a merge is reported late, and never to a founder that has ejected the member", seed: 5681),
    StoryRegression(name: "a merge is accepted although none of its members is known", seed: 6868),
    StoryRegression(
      name: "a member whose founder left during a partition connects to the founder for ever", seed: 1898),
    StoryRegression(name: "a change of the table during a handshake never reaches the other end", seed: 9824),
    StoryRegression(name: "a table for one of two merged sessions goes to the older one", seed: 41_002_334),
    StoryRegression(name: "a table for one of two merged sessions goes to the older one, twice", seed: 41_002_940),
    StoryRegression(name: "a digest that was sent before cancels the table that a member lacks", seed: 35_003_244),
    StoryRegression(name: "an answer offers a session that has become another one", seed: 47_000_309),
    StoryRegression(name: "a digest that is sent meanwhile cancels the table that a member lacks", seed: 474),
  ]

  /// Scenarios that `SessionStory` runs in a simulated network with faults.
  public static let networks: [StoryRegression] = [
    StoryRegression(name: "the route back has more hops than a frame can travel", seed: 3758),
    StoryRegression(name: "an invitation lasts although its node is isolated", seed: 2835),
    StoryRegression(name: "no node knows both parts of a session", seed: 6040),
    StoryRegression(name: "a handshake message names a session that its receiver does not know", seed: 1982),
    StoryRegression(name: "a lost farewell is sent again", seed: 3615),
    StoryRegression(name: "a restarted node does not know a member whose ticket it signed earlier", seed: 2021),
    StoryRegression(name: "a member that left is still listed by nodes that are not its peers", seed: 3965),
    StoryRegression(name: "a farewell does not end the ticket of a former epoch", seed: 7591),
    StoryRegression(name: "a table that begins to wait for its check is due in another wake-up", seed: 214),
    StoryRegression(name: "a route is found while the timer of a channel is due", seed: 33_011_396),
    StoryRegression(
      name: "a merge contains a ticket of a member that left, and the member stays connected", seed: 46_001_540),
    StoryRegression(name: "a node with the key of a member ends its membership", seed: 48_001_585),
    StoryRegression(name: "the cheapest one of the short paths leads relays to a longer path", seed: 37_004_355),
    StoryRegression(name: "a message behind one that is being checked is acknowledged first", seed: 33_010_023),
  ]
}
