import Frame
import Primitives
import TestSupport
import Testing

private let issuer = Identity(1)

private func list(_ nodes: [NodeID], serial: UInt64 = 7, count: Int? = nil) -> [UInt8] {
  let point = issuer.point
  let head = encoded { output in
    DenyListView.writeHead(
      count: count ?? nodes.count, serial: serial, issuedSeconds: 1_795_219_200, point: point.span.bytes, to: &output)
    for node in nodes { output.append(node) }
  }
  let signature = issuer.sign(head.span.bytes)
  return head + (0..<64).map { signature[$0] }
}

private func refusal(_ bytes: [UInt8]) -> FrameError? {
  do throws(FrameError) {
    _ = try DenyListView(bytes.span.bytes)
    return nil
  } catch {
    return error
  }
}

@Test func `a deny-list is encoded as documented`() throws {
  let bytes = list([NodeID(high: 1, low: 2), NodeID(high: 1, low: 3)])
  #expect(Array(bytes[..<20]) == hex("0000 0002 0000000000000007 000000006b00df00"))
  #expect(Array(bytes[20..<85]) == issuer.point)
  #expect(Array(bytes[85..<117]) == hex("0000000000000001 0000000000000002 0000000000000001 0000000000000003"))
  #expect(bytes.count == 117 + 64)
  let view = try DenyListView(bytes.span.bytes)
  #expect(view.serial == 7 && view.issuedSeconds == 1_795_219_200 && view.count == 2)
  #expect(view.node(1) == NodeID(high: 1, low: 3))
}

@Test func `every prefix of a deny-list is refused`() {
  let bytes = list([NodeID(high: 1, low: 2)])
  for count in 0..<bytes.count { #expect(refusal(Array(bytes[..<count])) != nil) }
}

@Test func `the ids of a deny-list are in ascending order, and their number is limited`() {
  #expect(refusal(list([])) == nil)
  #expect(refusal(list((1...112).map { NodeID(high: 0, low: $0) })) == nil)
  #expect(list((1...112).map { NodeID(high: 0, low: $0) }).count <= Limits.framePayloadBytesFloor)
  #expect(refusal(list((1...113).map { NodeID(high: 0, low: $0) })) == .overLength)
  #expect(refusal(list([NodeID(high: 0, low: 2), NodeID(high: 0, low: 1)])) == .malformed)
  #expect(refusal(list([NodeID(high: 0, low: 2), NodeID(high: 0, low: 2)])) == .malformed)
  #expect(refusal(list([NodeID(high: 0, low: 2)], serial: 0)) == .malformed)
  #expect(refusal(list([NodeID(high: 0, low: 2)], count: 2)) == .truncated)
  #expect(refusal(list([NodeID(high: 0, low: 2)], count: 0)) == .malformed)
  var reserved = list([])
  reserved[1] = 1
  #expect(refusal(reserved) == .malformed)
}
