import Primitives
import Session

/// Introductions in a scenario: two applications each connect to the address of the other.
final class StoryIntroductions {
  struct Wait {
    let session: SessionHandle
    let address: MemberAddress
    /// Whether both ends began the introduction in the quiet phase, so that it must connect.
    var mustConnect = false
    var outcome: InvitationOutcome?
  }

  /// The introductions. The key has the incarnation and the handle, as in `Story.asks`.
  var waits: [String: Wait] = [:]
  /// The incarnations of stations that have connected to an address at least once.
  var lives: Set<String> = []
  /// The last state of each member that the application was notified of, by incarnation and session.
  var states: [String: [MemberAddress: MemberState]] = [:]
  var connectedCount = 0
}

extension Story {
  /// The number of introductions that ended as connected.
  public var introducedCount: Int { introductions.connectedCount }

  /// Lets a station connect to the address of a random station. The second station usually connects to the first
  /// station, too.
  func introduce(_ station: Hall.Station) {
    let other = hall.stations[Int(random.below(UInt64(hall.stations.count)))]
    guard station.isUp, let session = session(station) else { return }
    connect(station, session, to: other)
    guard other.isUp, random.chance(perThousand: 800), let theirs = self.session(other) else { return }
    connect(other, theirs, to: station)
  }

  private func connect(
    _ station: Hall.Station, _ session: SessionHandle, to other: Hall.Station, mustConnect: Bool = false
  ) {
    let seconds = mustConnect ? 19 : 1 + random.below(30)
    let handle = try? station.sessions.connect(
      other.address, into: session, timeout: .seconds(seconds), now: hall.now)
    guard let handle else { return }
    let life = "\(station.number)/\(station.epoch)/"
    introductions.lives.insert(life)
    asks[life + "\(handle.number)"] = Ask(
      station: station.number, life: station.epoch, deadline: hall.now + .seconds(seconds) + Hall.step * 2)
    introductions.waits[life + "\(handle.number)"] = StoryIntroductions.Wait(
      session: session, address: other.address, mustConnect: mustConnect)
    if !mustConnect && random.chance(perThousand: 50) {
      try? station.sessions.cancel(handle, now: hall.now)
    }
  }

  /// Lets two stations connect to each other's addresses in the quiet phase. Each of the two stations has at most one
  /// session, so both must become members of one session.
  func introduceInCalm() {
    guard seed % 5 != 0, seed % 3 != 0, hall.stations.count > 3 else { return }
    let able = hall.stations.filter { $0.number != liar && (open[$0.number] ?? []).count <= 1 }
    guard able.count >= 2 else { return }
    let one = able[0], other = able[1]
    let sessions = [one, other].map { station in
      open[station.number]?.first ?? session(station)
    }
    guard let ours = sessions[0], let theirs = sessions[1] else { return }
    connect(one, ours, to: other, mustConnect: true)
    connect(other, theirs, to: one, mustConnect: true)
    hall.settle()
  }

  /// Records the end of an introduction. If the introduction connected, the application must have been notified of the
  /// connected member before.
  func introductionEnded(_ life: String, _ handle: InvitationHandle, _ outcome: InvitationOutcome) {
    guard let wait = introductions.waits[life + "\(handle.number)"] else { return }
    introductions.waits[life + "\(handle.number)"]?.outcome = outcome
    guard outcome == .connected else { return }
    introductions.connectedCount += 1
    let state = introductions.states[life + "\(wait.session.number)"]?[wait.address]
    if state != .connected && state != .paused {
      fail("a connection by address ends as connected, but the member is not connected")
    }
  }

  func checkIntroductions() {
    for (key, wait) in introductions.waits where wait.mustConnect && wait.outcome != .connected {
      return fail(
        "two applications that connect to each other share no session: \(key), \(wait.outcome.map { "\($0)" } ?? "no end")"
      )
    }
  }
}
