import Frame
import Primitives
import Session
import Testing
import TestSupport
import SessionSupport

@testable import SessionStories

private let chat = Service(endpoint: 0x01020304, type: Array("chat".utf8), info: [Array("a=1".utf8), Array("b=".utf8)])
private let photos = Service(endpoint: 9, type: Array("photos".utf8))
private let golden = hex(
  "02" + "00000009 06 70686f746f73 00 0000" + "01020304 04 63686174 02 0007 03 613d31 02 623d")

private func refusal(_ bytes: [UInt8]) -> FrameError? {
  do throws(FrameError) {
    _ = try ServicesView(bytes.span.bytes)
    return nil
  } catch { return error }
}

@Suite struct ServiceTests {
  @Test func `services are encoded in golden bytes, in ascending order of their endpoints`() throws {
    #expect(Service.advertisementBody([chat, photos]) == golden)
    #expect(Service.all(in: golden) == [photos, chat])
    #expect(Service.advertisementBody([]) == [0])
  }

  @Test func `invalid services are refused`() {
    for length in 0..<golden.count { #expect(refusal([UInt8](golden[..<length])) == .truncated, "\(length)") }
    #expect(refusal(golden + [0]) == .malformed)
    for (offset, byte, want) in [
      (0, 17, FrameError.overLength), (1, 9, .malformed), (4, 0, .malformed), (6, 0x2d, .malformed),
      (28, 0x3d, .malformed), (26, 8, .truncated), (26, 6, .truncated), (24, 1, .malformed), (24, 3, .truncated),
    ] {
      #expect(refusal(golden.with { $0[offset] = UInt8(byte) }) == want, "byte \(offset)")
    }
    #expect(refusal([1, 0, 0, 0, 9, 16] + [UInt8](repeating: 0x61, count: 16) + [0, 0, 0]) == .overLength)
  }

  @Test func `a node has at most 16 services with limited info`() throws {
    let hall = Hall(1)
    let sessions = hall.stations[0].sessions
    for number in 2...16 {
      try sessions.advertise(Service(endpoint: UInt32(number), type: Array("fifteen-letters".utf8)))
    }
    #expect(throws: SessionError.full) { try sessions.advertise(Service(endpoint: 17, type: Array("x".utf8))) }
    let long = [[UInt8]](repeating: Array("key=".utf8) + [UInt8](repeating: 0x61, count: 251), count: 5)
    try sessions.advertise(Service(endpoint: 2, type: Array("x".utf8), info: long))
    #expect(throws: SessionError.full) {
      try sessions.advertise(Service(endpoint: 3, type: Array("x".utf8), info: long))
    }
    #expect(throws: SessionError.invalid) { try sessions.advertise(Service(endpoint: 3, type: Array("-".utf8))) }
  }

  @Test func `a service is found once, may change, and is lost when withdrawn or with its node`() {
    let hall = Hall(2)
    let station = hall.stations[0], other = hall.stations[1].id
    let address = MemberAddress(node: other, endpoint: chat.endpoint)
    station.sessions.peerServices(other, Service.advertisementBody([chat]))
    station.sessions.peerServices(other, Service.advertisementBody([chat]))
    hall.settle()
    #expect(station.events == [.serviceFound(address, chat)])
    var changed = chat
    changed.info = []
    station.events = []
    station.sessions.peerServices(other, Service.advertisementBody([photos, changed]))
    hall.settle()
    #expect(
      station.events == [
        .serviceFound(MemberAddress(node: other, endpoint: 9), photos), .serviceChanged(address, changed),
      ])
    station.events = []
    station.sessions.peerServices(other, Service.advertisementBody([photos]))
    station.sessions.peerLost(other)
    hall.settle()
    #expect(
      station.events == [.serviceLost(address), .serviceLost(MemberAddress(node: other, endpoint: 9))])
  }
}
