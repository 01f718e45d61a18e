import Testing

@testable import SessionStories

/// The rules that hold in every random scenario:
/// - An invitation ends once at each end, and in time.
/// - All connected members have one view and one session id, whatever the order of merges.
/// - Nothing is delivered between incarnations of nodes that have not completed a handshake.
/// - A member that left is no member without a new ticket, and forged entries make nobody a member.
/// - No node holds more than it granted or grants more than it can hold.
/// - A message reported as delivered has arrived, and a reader that does not read blocks no other.
/// - Two applications that connect to each other's addresses become members of one session.
/// - A stream ends once, and the received data is a prefix of the written data.
@Suite struct StoryTests {
  @Test func `stories of invitations, merges, crashes, partitions and lies end well`() {
    var connected = 0, delivered = 0, aliases = 0, lies = 0, streamed = 0, finished = 0, talks = 0, introduced = 0
    for seed in 1...100 as ClosedRange<UInt64> {
      let story = Story(seed)
      let wrong = story.play()
      #expect(wrong == nil, "\(story.report())")
      if wrong != nil { return }
      connected += story.connectedCount
      delivered += story.deliveredCount
      aliases += story.aliasCount
      lies += story.lieCount
      streamed += story.witness.bytes
      finished += story.witness.finishedCount
      talks += story.talkCount
      introduced += story.introducedCount
    }
    // The scenarios must not be empty.
    #expect(
      connected > 1_000 && delivered > 500 && aliases > 50 && lies > 200 && streamed > 10_000_000 && finished > 100
        && talks > 100 && introduced > 100,
      "\(connected) \(delivered) \(aliases) \(lies) \(streamed) \(finished) \(talks) \(introduced)")
  }
}
