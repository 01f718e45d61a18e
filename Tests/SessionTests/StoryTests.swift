import Testing

@testable import SessionStories

/// The rules that hold in every random scenario:
/// - An invitation ends once at each end, and in time.
/// - All connected members of a session have the same view of its members and the same session id, whatever the order
///   of merges.
/// - A message is delivered only between incarnations (runs) of nodes that have completed a handshake.
/// - An address that left is a member again only by a new ticket, its signed proof of admission. Forged entries make no
///   address a member.
/// - No node holds more bytes than its granted credit, or grants more credit than its memory allows.
/// - A message that was reported as delivered has arrived. An application that does not read delays no other
///   application.
/// - Two applications that connect to each other's addresses (an introduction) become members of one session.
/// - A stream ends once, and the received data is a prefix of the written data.
@Suite struct StoryTests {
  @Test func `scenarios of invitations, merges, crashes, partitions and lies end without a violation`() {
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
    // The counts prove that the scenarios are not empty.
    #expect(
      connected > 1_000 && delivered > 500 && aliases > 50 && lies > 200 && streamed > 10_000_000 && finished > 100
        && talks > 100 && introduced > 100,
      "\(connected) \(delivered) \(aliases) \(lies) \(streamed) \(finished) \(talks) \(introduced)")
  }
}
