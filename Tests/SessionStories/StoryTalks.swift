import Primitives
import Session

/// A message that is sent in the quiet phase, when no station crashes and no member leaves. A message that is reported
/// as delivered must have arrived.
struct Talk {
  let from: Int
  let session: SessionHandle
  let to: MemberAddress
  let data: [UInt8]
  /// The id of the message. Nil until the sender has credit for the message.
  var id: SessionMessageID?
  var isDelivered = false
  var hasCome = false
}

/// The memory for messages in a scenario: shares of members, and reservations beyond them.
extension Story {
  /// Checks that unread messages and granted credit fit into the memory of a station.
  func checkRoom(_ station: Hall.Station) {
    let (shares, loans) = station.sessions.roomGranted
    if shares > SessionLimits.sharePoolBytes { fail("the shares exceed their pool at station \(station.number)") }
    if loans > SessionLimits.loanPoolBytes { fail("the loans exceed their pool at station \(station.number)") }
    var waiting = 0
    for message in unread where message.station == station.number && message.life == station.epoch {
      waiting += message.byteCount + SessionLimits.messageOverheadBytes
    }
    if waiting > Int(shares + loans) { fail("more bytes wait at station \(station.number) than were granted") }
  }

  /// Lets members send messages to each other that are longer than any share. So each message needs a reservation.
  func beginTalks() {
    for station in hall.stations where station.number != liar {
      guard let session = open[station.number]?.first else { continue }
      for member in station.sessions.members(of: session) where hall.number(of: member.address.node) != liar {
        guard member.state == .connected || member.state == .paused else { continue }
        for _ in 0..<2 {
          sent += 1
          var data: [UInt8] = [UInt8(station.number)]
          data.append(bigEndian: station.epoch)
          data.append(bigEndian: sent)
          data += [UInt8](repeating: 0, count: 64_000)
          talks.append(Talk(from: station.number, session: session, to: member.address, data: data))
        }
        tryAgain(station, session, member.address)
      }
    }
    hall.settle()
  }

  func tryAgain(_ station: Hall.Station, _ session: SessionHandle, _ to: MemberAddress) {
    for index in talks.indices
    where talks[index].from == station.number && talks[index].session == session && talks[index].to == to
      && talks[index].id == nil
    {
      let message = try? station.sessions.send(
        talks[index].data, in: session, to: [to], now: hall.now, canSend: { _, _, _ in true })
      guard let message else { return }
      talks[index].id = message.id
      for output in message.outputs { hall.post(output, from: station) }
    }
  }

  func delivered(_ station: Hall.Station, _ id: SessionMessageID, _ to: MemberAddress) {
    for index in talks.indices where talks[index].from == station.number && talks[index].id == id {
      talks[index].isDelivered = true
    }
  }

  func hearsTalk(_ station: Hall.Station, _ session: SessionHandle, _ from: MemberAddress, _ data: [UInt8]) {
    for index in talks.indices
    where talks[index].to == station.address && talks[index].from == hall.number(of: from.node)
      && talks[index].data == data
    {
      talks[index].hasCome = true
    }
  }

  func checkTalks() {
    for talk in talks {
      if talk.isDelivered && !talk.hasCome {
        fail("a message of station \(talk.from) was reported as delivered, but is lost")
      }
      talkCount += talk.hasCome ? 1 : 0
      let reader = hall.number(of: talk.to.node)
      if !talk.hasCome && !isDeaf(reader) {
        fail("a message of station \(talk.from) finds no room at station \(reader), which reads")
      }
    }
  }
}
