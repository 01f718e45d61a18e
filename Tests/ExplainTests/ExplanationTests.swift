import Explain
import Frame
import Primitives
import Testing
import Text

private let box = NodeID(high: 0xB0, low: 1), bob = NodeID(high: 0xB0B, low: 2), far = NodeID(high: 0xFA4, low: 3)

private func link(to node: NodeID, cost: UInt16 = 10, frames: UInt16 = 16_640, _ bearer: BearerKind = .ethernet)
  -> Neighbour
{ Neighbour(node: node, cost: cost, payloadBytesMax: frames, bearer: bearer) }

private func failure(_ node: NodeID, _ cause: ContactCause, secondsAgo: UInt64 = 3) -> ContactFailure {
  ContactFailure(
    node: node, bearer: .ethernet, address: "10.0.0.2:41820", cause: cause, secondsAgo: secondsAgo, count: 5)
}

/// The facts for a question about bob, on a box with working Ethernet and no other bearer. The box knows nothing of
/// bob.
private func facts() -> ExplainFacts {
  var facts = ExplainFacts(local: box, from: box, to: bob)
  facts.nodes = [NodeFacts(id: box, name: "box")]
  facts.names = [(bob, "bob"), (far, "far")]
  facts.linksMax = 64
  facts.bearers = [
    BearerFacts(.ip, isEnabled: true, isUp: true, detail: "eth0", problem: ""),
    BearerFacts(.wifiDirect, isEnabled: false, isUp: false, detail: "", problem: ""),
    BearerFacts(.bluetoothLE, isEnabled: true, isUp: true, detail: "hci0", problem: ""),
  ]
  return facts
}

struct ExplanationTests {
  private func explain(_ change: (inout ExplainFacts) -> Void) -> Explanation {
    var facts = facts()
    change(&facts)
    return Explanation(facts)
  }

  // MARK: Nodes that can communicate

  @Test func `a route is explained with its weakest link and its largest frame`() {
    let explanation = explain {
      $0.way = [link(to: bob), link(to: far, cost: 8000, frames: 4096, .bluetoothLE)]
      $0.to = far
      $0.payloadBytesMax = 4096
      $0.hasSession = true
    }
    #expect(explanation.outcome == .canTalk && explanation.canTalk && explanation.remedy.isEmpty)
    #expect(
      explanation.verdict
        == "2 links: ethernet to bob, bluetooth-le to far; the weakest is bluetooth-le to far, cost 8000; frames of up to 4096 bytes"
    )
  }

  @Test func `a parked link is explained as one that is dialled on demand`() {
    let explanation = explain {
      $0.way = [link(to: bob, .bluetoothLE)]
      $0.links = [
        ExplainedLink(
          bearer: .bluetoothLE, state: "parked", sinceSeconds: 60, roundTripMicroseconds: 0, cost: 8000,
          bytesQueued: 0, isQuarantined: false)
      ]
    }
    #expect(explanation.outcome == .untried && explanation.canTalk)
    #expect(explanation.findings.contains { $0.text.hasSuffix("dialled when there is data to send") })
  }

  @Test func `a failure from before the current link is not reported`() {
    let explanation = explain {
      $0.way = [link(to: bob)]
      $0.failures = [failure(bob, .dialFailed("Connection refused"), secondsAgo: 61)]
      $0.links = [
        ExplainedLink(
          bearer: .ethernet, state: "up", sinceSeconds: 60, roundTripMicroseconds: 900, cost: 10, bytesQueued: 0,
          isQuarantined: true)
      ]
    }
    #expect(explanation.canTalk && !explanation.findings.contains { $0.state == .wrong })
    #expect(explanation.findings.contains { $0.text.contains("in quarantine") })
  }

  // MARK: Nodes that cannot communicate

  @Test func `incompatible encryption preferences are the cause although a route exists`() {
    let explanation = explain {
      $0.way = [link(to: bob)]
      $0.nodes.append(NodeFacts(id: bob, name: "bob", encryption: EncryptionPreference.none))
    }
    #expect(!explanation.canTalk && explanation.verdict == "this box requires encryption, but bob has none")
    #expect(explanation.remedy.hasPrefix("on bob: [peer] encryption = optional"))
  }

  /// Explains a node with end-to-end encryption that is two links away, behind bob.
  private func explainFar(_ change: (inout ExplainFacts) -> Void) -> Explanation {
    explain {
      $0.to = far
      $0.way = [link(to: bob), link(to: far)]
      $0.nodes.append(NodeFacts(id: far, name: "far"))
      change(&$0)
    }
  }

  @Test func `a refusal two links away is the cause, and its remedy is for the refusing node`() {
    let there = explainFar { $0.sessionFault = SessionFault(.refusedThere, secondsAgo: 300) }
    #expect(!there.canTalk && there.hops.isEmpty)
    #expect(there.verdict == "far refuses this box: it does not accept this box's key, certificate or name")
    #expect(there.remedy == "on far: causeway identity trust \(box.text); then here: causeway ping \(far.text)")
    let here = explainFar {
      $0.sessionFault = SessionFault(.refusedHere(.certificate("its certificate has expired")), secondsAgo: 300)
    }
    #expect(!here.canTalk && here.verdict == "this box refuses far: its certificate has expired")
    #expect(here.remedy.hasSuffix("causeway identity trust \(far.text)"))
    #expect(here.findings.contains { $0.text == "this box refuses far: its certificate has expired (5 min 0 s ago)" })
  }

  @Test func `a key that is refused here is also refused over a relay`() {
    let explanation = explainFar { $0.trustFault = .revoked }
    #expect(!explanation.canTalk && explanation.verdict == "far is refused here: its key is revoked (deny-list)")
    #expect(!explanation.findings.contains { $0.text == "sealed end to end" })
  }

  @Test func `a node that refused a link is not reported as reachable over a relay`() {
    for cause in [ContactCause.refusedThere(alert: 44), .refusedThere(alert: nil)] {
      let refused = explainFar { $0.failures = [failure(far, cause)] }
      #expect(refused.outcome == .cannotTalk && refused.verdict.hasPrefix("it refuses this box"))
      // A session that was opened since shows that the nodes accept each other.
      #expect(explainFar { ($0.failures, $0.hasSession) = ([failure(far, cause)], true) }.outcome == .canTalk)
      #expect(explainFar { $0.failures = [failure(far, cause, secondsAgo: 601)] }.outcome == .untried)
    }
  }

  @Test func `a full table is reported with the node that has it`() {
    let here = explainFar { $0.sessionFault = SessionFault(.noSlotHere, secondsAgo: 0) }
    #expect(!here.canTalk && here.verdict == "this box is busy: all its sessions with peers are in use")
    let there = explainFar { $0.sessionFault = SessionFault(.noSlotThere, secondsAgo: 4) }
    #expect(!there.canTalk && there.verdict == "far is busy: all its sessions with peers are in use")
    #expect(there.remedy.contains("on far"))
  }

  @Test func `a handshake that failed long ago does not count`() {
    let explanation = explainFar { $0.sessionFault = SessionFault(.silent, secondsAgo: 61) }
    #expect(explanation.canTalk)
    #expect(explanation.findings.contains { $0.text.hasPrefix("far does not answer the end-to-end handshake") })
    let now = explainFar { $0.sessionFault = SessionFault(.silent, secondsAgo: 60) }
    #expect(!now.canTalk && now.remedy.contains("on far: causeway explain \(box.text)"))
  }

  @Test func `encryption between two nodes counts as working with a session, and as untried without`() {
    let untried = explainFar { _ in }
    #expect(untried.outcome == .untried && untried.canTalk && untried.remedy == "causeway ping \(far.text)")
    #expect(untried.findings.contains { $0.state == .note && $0.text.hasPrefix("not tried yet") })
    #expect(!untried.findings.contains { $0.text.hasPrefix("sealed end to end") })
    let tried = explainFar { $0.hasSession = true }
    #expect(tried.outcome == .canTalk && tried.remedy.isEmpty)
    #expect(tried.findings.contains { $0.state == .good && $0.text == "sealed end to end" })
  }

  @Test func `an unanswered handshake is reported at once, and counts as a failure after the answer deadline`() {
    let now = explainFar { $0.unanswered = (5, 1) }
    #expect(now.outcome == .unanswered && now.canTalk && now.remedy.hasPrefix("on far: causeway explain \(box.text)"))
    #expect(now.findings.contains { $0.text == "far has not answered the end-to-end handshake for 5 s" })
    let later = explainFar { $0.unanswered = (12, 4) }
    #expect(later.outcome == .cannotTalk && later.verdict == "far does not answer the end-to-end handshake")
    let longAgo = explainFar { $0.unanswered = (600, 61) }
    #expect(longAgo.outcome == .unanswered)
  }

  @Test func `a working link shows that both nodes accept each other`() {
    let explanation = explain {
      $0.way = [link(to: bob)]
      $0.nodes.append(NodeFacts(id: bob, name: "bob"))
      $0.links = [
        ExplainedLink(
          bearer: .ethernet, state: "up", sinceSeconds: 1, roundTripMicroseconds: 0, cost: 10, bytesQueued: 0,
          isQuarantined: false)
      ]
    }
    #expect(explanation.outcome == .canTalk)
    #expect(
      explanation.findings.contains { $0.state == .good && $0.text.hasPrefix("sealed end to end when they talk") })
  }

  @Test func `it is unknown whether two nodes without encryption accept each other`() {
    let explanation = explainFar {
      for index in $0.nodes.indices { $0.nodes[index].encryption = EncryptionPreference.none }
    }
    #expect(explanation.outcome == .unknown && explanation.canTalk)
    #expect(explanation.remedy == "on far: causeway explain \(box.text)")
  }

  @Test func `an explanation is written as JSON and read back`() throws {
    for (explanation, outcome) in [
      (explainFar { _ in }, Explanation.Outcome.untried), (explainFar { $0.hasSession = true }, .canTalk),
      (explainFar { $0.unanswered = (1, 1) }, .unanswered), (explainFar { $0.trustFault = .revoked }, .cannotTalk),
    ] {
      let report = try ExplainReport(explanation.toJSON())
      defer { report.release() }
      #expect(report.outcome == outcome && report.canTalk == (outcome != .cannotTalk))
    }
  }

  @Test func `an explanation of the path between two other nodes names the node to ask about their trust`() {
    let explanation = explain {
      $0 = ExplainFacts(local: bob, from: box, to: far)
      $0.nodes = [
        NodeFacts(id: box, name: "box", neighbours: [link(to: bob)]),
        NodeFacts(id: bob, name: "bob", neighbours: [link(to: box), link(to: far)]),
        NodeFacts(id: far, name: "far", neighbours: [link(to: bob)]),
      ]
    }
    #expect(explanation.outcome == .unknown && explanation.canTalk)
    #expect(explanation.remedy == "on box: causeway explain far")
    #expect(
      explanation.findings.contains {
        $0.subject == "trust" && $0.state == .note && $0.remedy == "on box: causeway explain far"
      })
  }

  @Test func `a refusal by trust is the cause, and its remedy contains the key`() {
    let explanation = explain {
      $0.trustFault = .certificate("its certificate, or one above it, has expired; issue a new one")
      $0.failures = [failure(bob, .dialFailed("Connection refused"))]
    }
    #expect(explanation.verdict.contains("has expired"))
    #expect(explanation.remedy.hasSuffix("causeway identity trust \(bob.text)"))
  }

  @Test func `the remedy for a revoked key is a new key`() {
    let explanation = explain { $0.trustFault = .revoked }
    #expect(explanation.remedy == "a revoked key stays revoked; on bob: causeway identity new --replace")
  }

  @Test func `the remedy for a refusal by the peer is that the peer trusts this box's key`() {
    let explanation = explain { $0.failures = [failure(bob, .refusedThere(alert: 48))] }
    #expect(explanation.verdict.hasPrefix("it refuses this box: none of its authorities issued this box's certificate"))
    #expect(explanation.remedy == "on bob: causeway identity trust \(box.text)")
  }

  @Test func `a refusal takes precedence over a failed dial of another bearer`() {
    let explanation = explain {
      var refused = failure(bob, .refusedThere(alert: 44))
      refused.bearer = .bluetoothLE
      $0.failures = [failure(bob, .dialFailed("Connection refused"), secondsAgo: 0), refused]
    }
    #expect(explanation.verdict.contains("revoked there"))
  }

  @Test func `a relay that does not forward takes precedence over an old failure`() {
    let explanation = explain {
      $0.failures = [failure(bob, .silent, secondsAgo: 3600)]
      $0.nodes = [
        NodeFacts(id: box, neighbours: [link(to: far)]),
        NodeFacts(id: far, name: "far", relays: false, neighbours: [link(to: box), link(to: bob)]),
        NodeFacts(id: bob, neighbours: [link(to: far)]),
      ]
    }
    #expect(explanation.verdict == "the path would lead over far, which does not relay")
    #expect(explanation.remedy == "on far: [node] relay = yes, then: systemctl restart causeway")
  }

  @Test func `a failure of an absent relay is the cause for the node behind it`() {
    let explanation = explain {
      $0.to = far
      $0.failures = [failure(bob, .stopped)]
      $0.nodes = [
        NodeFacts(id: box), NodeFacts(id: bob, name: "bob", neighbours: [link(to: box), link(to: far)]),
        NodeFacts(id: far, neighbours: [link(to: bob)]),
      ]
    }
    #expect(
      explanation.verdict
        == "the path led over bob, to which this box has no link: its daemon has stopped")
    #expect(explanation.remedy == "on bob: systemctl start causeway")
  }

  @Test func `a bearer that is disabled is reported with its section`() {
    let explanation = explain { _ in }
    #expect(
      explanation.verdict == "bob is out of reach; not found over ip, bluetooth-le; switched off here: wifi-direct")
    #expect(explanation.findings.contains { $0.text == "switched off here: [wifi-direct] enabled = no" })
    #expect(explanation.remedy.hasSuffix("enable a bearer here that it uses: [wifi-direct] enabled = yes"))
    let none = explain { facts in
      for index in facts.bearers.indices { facts.bearers[index].isEnabled = false }
    }
    #expect(
      none.verdict == "every bearer is switched off here"
        && none.remedy.hasPrefix("[ip], [wifi-direct], [bluetooth] enabled = yes"))
  }

  @Test func `a bearer that is down is reported and does not hide the others`() {
    let explanation = explain { $0.bearers[0].isUp = false }
    #expect(explanation.verdict.hasPrefix("bob is out of reach; not found over bluetooth-le; not up here: ip"))
  }

  @Test func `a fault of a bearer is the cause if nothing else is known`() {
    let explanation = explain { $0.bearers[2].problem = "hci0 is blocked by rfkill" }
    #expect(explanation.verdict == "bluetooth-le does not work here: hci0 is blocked by rfkill")
    #expect(explanation.remedy == "causeway doctor")
  }

  @Test func `a fault of a bearer takes precedence over the links that it broke`() {
    let explanation = explain {
      var broken = failure(bob, .broken("its interface is down"))
      broken.bearer = .bluetoothLE
      $0.failures = [broken]
      $0.bearers[2].problem = "hci0 is blocked by rfkill"
    }
    #expect(explanation.verdict.hasPrefix("bluetooth-le does not work here"))
  }

  @Test func `a failing address without a known node may belong to the missing peer`() {
    let explanation = explain { $0.failures = [failure(.none, .dialFailed("Connection refused"))] }
    #expect(explanation.verdict.contains("bob is not found, and an address without a known node fails"))
    #expect(
      explanation.findings.contains {
        $0.text == "10.0.0.2:41820, 3 s ago, 5 times: the dial failed: Connection refused"
      })
  }

  @Test func `a peer that was found but is not linked yet is reported with its planned dial`() {
    let explanation = explain {
      $0.heard = [
        HeardFacts(
          bearer: .ethernet, address: "10.0.0.2:41820", isNamed: true, secondsAgo: 1, plan: .waiting(milliseconds: 1250)
        )
      ]
    }
    #expect(explanation.verdict == "bob is found at 10.0.0.2:41820, but not linked yet: the next dial is in 1.2 s")
  }

  @Test func `a link that has just come up is reported`() {
    let explanation = explain {
      $0.links = [
        ExplainedLink(
          bearer: .ethernet, state: "up", sinceSeconds: 0, roundTripMicroseconds: 0, cost: 10, bytesQueued: 0,
          isQuarantined: false)
      ]
    }
    #expect(explanation.verdict == "their link is up, but there is no route yet")
  }

  @Test func `an explanation of one node with itself is refused`() {
    let explanation = explain { $0.to = box }
    #expect(!explanation.canTalk && explanation.verdict.hasPrefix("both are the same node"))
  }

  // MARK: Two nodes that are not this box

  @Test func `the path between two other nodes is read from the link-state database`() {
    var facts = ExplainFacts(local: box, from: bob, to: far)
    facts.nodes = [
      NodeFacts(id: box, name: "box", neighbours: [link(to: bob), link(to: far, cost: 100, .wifi)]),
      NodeFacts(id: bob, name: "bob", neighbours: [link(to: box)]),
      NodeFacts(id: far, name: "far", neighbours: [link(to: box, cost: 100, .wifi)]),
    ]
    let explanation = Explanation(facts)
    #expect(explanation.canTalk)
    #expect(
      explanation.hops.map { $0.node } == [box, far] && explanation.hops.map { $0.bearer } == [.ethernet, .wifi])
  }

  @Test func `two other nodes do not communicate over a node that does not forward`() {
    var facts = ExplainFacts(local: box, from: bob, to: far)
    facts.nodes = [
      NodeFacts(id: box, name: "box", relays: false, neighbours: [link(to: bob), link(to: far)]),
      NodeFacts(id: bob, name: "bob", neighbours: [link(to: box)]),
      NodeFacts(id: far, name: "far", neighbours: [link(to: box)]),
    ]
    let explanation = Explanation(facts)
    #expect(!explanation.canTalk && explanation.hops.isEmpty)
    #expect(explanation.verdict == "the path would lead over this box, which does not relay")
  }

  @Test func `a link that only one end lists is reported`() {
    var facts = ExplainFacts(local: box, from: bob, to: far)
    facts.nodes = [
      NodeFacts(id: box), NodeFacts(id: bob, name: "bob", ageSeconds: 400, neighbours: [link(to: far)]),
      NodeFacts(id: far, name: "far"),
    ]
    let explanation = Explanation(facts)
    #expect(
      explanation.verdict == "bob lists a link to far, but far lists none back (as of 6 min 40 s ago)")
    #expect(explanation.remedy == "on far: causeway explain bob")
    #expect(explanation.findings.contains { $0.text == "the last list of links from bob is 6 min 40 s old" })
  }

  // MARK: Node ids

  @Test func `a known prefix of an id matches the whole id`() {
    let half = NodeID(high: 0xB0B, low: 0)
    #expect(half.mayBe(bob) && bob.mayBe(half) && bob.mayBe(bob))
    #expect(!bob.mayBe(NodeID(high: 0xB0B, low: 3)) && !NodeID.none.mayBe(.none))
    // A prefix of an id is written as an id whose lower half is zero. These ids have a zero upper half, so neither is a
    // prefix of the other.
    #expect(!NodeID(high: 0, low: 1).mayBe(NodeID(high: 0, low: 2)))
  }

  @Test func `the number of known nodes is limited, however many ids others invent`() {
    var known = KnownNodes()
    for number in 1...UInt64(3000) { known.add(NodeID(high: number, low: 1), "") }
    #expect(known.all.count == 2048)
  }

  @Test func `a node that only its neighbours list is found as the end of a path`() {
    let explanation = explain {
      $0.to = far
      $0.nodes = [
        NodeFacts(id: box, neighbours: [link(to: bob)]),
        NodeFacts(id: bob, name: "bob", neighbours: [link(to: box), link(to: far)]),
      ]
    }
    #expect(explanation.verdict == "bob lists a link to far, but far lists none back (as of 0 s ago)")
  }

  @Test func `a whole id replaces its prefix`() {
    var known = KnownNodes()
    known.add(NodeID(high: 0xB0B, low: 0), "")
    known.add(bob, "bob")
    known.add(NodeID(high: 0xB0B, low: 0), "")
    #expect(known.all.count == 1 && known.all[0].id == bob && known.all[0].name == "bob")
  }
}
