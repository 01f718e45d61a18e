import Bearer
import CAvahi
import Primitives
import Testing

@testable import Discovery

/// A responder that publishes a record whose state the test sets. The responder also collects the reports.
private final class Publisher: PublishingResponder, ResponderOwner {
  let isReady = true
  var owner: any ResponderOwner { self }
  var name = ClaimedName("box", .service)
  let lastError = CInt(AVAHI_ERR_TIMEOUT)
  var published: [String] = []
  var troubles: [String] = []
  var deadline = Instant.never

  func publish() { published.append(name.current) }
  func failed(_ code: CInt) { rest(code) }
  func setRetry() { deadline = name.deadline }
  func activate(_ settings: DiscoverySettings) {}
  func updateTXT(_ settings: DiscoverySettings) {}
  func browseAgain(_ settings: DiscoverySettings) {}
  func lookUp(_ service: Service, _ settings: DiscoverySettings) -> Bool { false }
  func endLookup(_ service: Service) {}
  func close() {}

  func responderTrouble(_ responder: any Responder, _ text: String) { troubles.append(text) }
  func responderReady(_ responder: any Responder) {}
  func responderNotReady(_ responder: any Responder) {}
  func responderFailed(_ responder: any Responder) {}
  func responderFound(_ responder: any Responder, _ key: ServiceKey) {}
  func responderLost(_ responder: any Responder, _ key: ServiceKey) {}
  func responderLookedUp(_ responder: any Responder, _ service: Service, _ endpoint: IPEndpoint?, _ record: NodeRecord)
  {}
  func responderRecovered(_ responder: any Responder, _ text: String) {}
  func isProven(_ source: UInt64, on interface: UInt32) -> Bool { false }
}

struct PublishingResponderTests {
  @Test func `each conflict publishes the next name, and the ninth one starts a pause`() {
    let publisher = Publisher()
    for _ in 0..<8 { publisher.groupStateChanged(AVAHI_ENTRY_GROUP_COLLISION) }
    #expect(publisher.published == (2...9).map { "box #\($0)" })
    #expect(publisher.troubles.isEmpty && publisher.deadline == .never)
    publisher.groupStateChanged(AVAHI_ENTRY_GROUP_COLLISION)
    #expect(publisher.published.count == 8 && publisher.name.isResting && publisher.deadline != .never)
    #expect(publisher.troubles == [NameReport.taken(.service)])
  }

  @Test func `any other failure starts a pause and keeps the name`() {
    let publisher = Publisher()
    publisher.groupStateChanged(AVAHI_ENTRY_GROUP_FAILURE)
    #expect(publisher.name.isResting && publisher.name.current == "box" && publisher.deadline != .never)
    #expect(publisher.troubles == [NameReport.failed(avahiText(publisher.lastError))])
    #expect(publisher.published.isEmpty)
  }

  @Test func `a name used by another service of this machine is skipped`() {
    let publisher = Publisher()
    var results: [CInt] = [CInt(AVAHI_ERR_COLLISION), CInt(AVAHI_ERR_COLLISION), 0]
    #expect(publisher.claim { results.removeFirst() } == 0)
    #expect(publisher.name.current == "box #3" && publisher.troubles.isEmpty)
    #expect(publisher.claim { CInt(AVAHI_ERR_COLLISION) } == nil)
    #expect(publisher.name.isResting && publisher.troubles == [NameReport.taken(.service)])
  }

  @Test func `a name is held when its records are established`() {
    let publisher = Publisher()
    while !publisher.name.isResting { publisher.groupStateChanged(AVAHI_ENTRY_GROUP_COLLISION) }
    #expect(publisher.name.due(now: publisher.deadline, random: 7) == .claim)
    #expect(publisher.name.deadline == .never)
    publisher.groupStateChanged(AVAHI_ENTRY_GROUP_ESTABLISHED)
    #expect(publisher.deadline != .never, "to be reported when it has settled")
  }
}
