import CSystem
import Identity
import Primitives
import SecureTransport
import Testing

@testable import Trust

struct StoreTests {
  let box = Box()

  private func store() throws -> TrustStore { TrustStore(try StateDirectory(box.place.path)) }

  @Test func epochsRiseFromOneStartToTheNext() throws {
    let epochs = try (0..<5).map { _ in try store().nextEpoch() }
    #expect(epochs.map { $0 >> 32 } == [1, 2, 3, 4, 5])
    #expect(Set(epochs.map { UInt32(truncatingIfNeeded: $0) }).count > 1)
  }

  @Test func aTornFileFallsBackSaysSoAndNoEpochComesTwice() throws {
    for _ in 0..<3 { _ = try store().nextEpoch() }
    try box.corrupt("state")
    let fallen = try store()
    #expect(fallen.notice?.hasPrefix(box.place.path + "/state is damaged: the one before it is used") == true)
    #expect(try fallen.nextEpoch() >> 32 == 4)
    #expect(try store().notice == nil)
  }

  @Test func withBothGenerationsLostItBeginsAnewAndSaysSo() throws {
    for _ in 0..<3 { _ = try store().nextEpoch() }
    try box.corrupt("state")
    try box.corrupt("state.old")
    let fresh = try store()
    #expect(fresh.notice?.hasSuffix("begin anew") == true)
    #expect(try fresh.nextEpoch() >> 32 == 1)
  }

  @Test func aStateSurvivesTheWay() throws {
    var state = TrustState()
    state.epochCounter = 0xFFFF_FFFF
    state.keptSeconds = 1_795_219_200
    state.pins = [
      Pin(node: id(1), name: name("bob"), isByOperator: true), Pin(node: id(2), name: [], isByOperator: false),
    ]
    state.denied = [id(1), id(2)]
    state.deniedSerial = 9
    state.deniedSeconds = 5
    state.lists = [[1, 2, 3], []]
    #expect(TrustState(state.encoded()) == state)
    let bytes = state.encoded()
    for count in 0..<bytes.count { #expect(TrustState(Array(bytes[..<count])) == nil) }
    #expect(TrustState(bytes + [0]) == nil)
  }

  @Test func theLargestStateFitsItsFile() {
    var state = TrustState()
    for number in 0..<UInt64(TrustLimits.pinsMax) {
      state.pins.append(Pin(node: id(number), name: [UInt8](repeating: 0x61, count: 63), isByOperator: false))
    }
    for number in 0..<UInt64(Limits.deniedMax) { state.denied.append(id(number)) }
    state.lists = [[UInt8]](repeating: [UInt8](repeating: 1, count: 2048), count: TrustLimits.operatorsMax)
    #expect(state.encoded().count <= TrustState.bytesMax)
    #expect(TrustState(state.encoded()) == state)
  }

  @Test func afterTheLastCountTheFirstComesAgain() throws {
    let last = try store()
    last.state.epochCounter = .max - 1
    #expect(try last.nextEpoch() >> 32 == 0xFFFF_FFFF)
    #expect(try store().nextEpoch() >> 32 == 1)
  }
}
