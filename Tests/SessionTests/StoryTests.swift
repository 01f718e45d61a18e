import Testing

@testable import SessionStories

/// What holds in every story: an invitation ends once at each end and in time; the connected have one view and one id,
/// whatever the order of merges; nothing is delivered between lives that have not met; who left is no member without a
/// new ticket; nobody is a member by forged entries; nobody holds more than it granted, and grants more than it
/// can hold; what was told as delivered has come; who does not read holds up no
/// other; two that connect to each other's addresses meet; streams end once, and what came is a prefix.
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
    // The stories are about something.
    #expect(
      connected > 1_000 && delivered > 500 && aliases > 50 && lies > 200 && streamed > 10_000_000 && finished > 100
        && talks > 100 && introduced > 100,
      "\(connected) \(delivered) \(aliases) \(lies) \(streamed) \(finished) \(talks) \(introduced)")
  }
}
