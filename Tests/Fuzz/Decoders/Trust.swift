import Frame
import FuzzSupport
import TestSupport
@testable import Trust

/// Decodes any bytes as a deny-list, which revokes keys, and as the file with a node's trust state. A legal value must
/// encode to the same bytes.
func fuzzTrust(_ input: UnsafeRawBufferPointer) {
  readList(input)
  if let state = TrustState(Array(input)) {
    expect(TrustState(state.encoded()) == state, "a state is written otherwise than it was read")
  }
}

private func readList(_ input: UnsafeRawBufferPointer) {
  guard let view = try? DenyListView(input.bytes) else { return }
  expect(view.signed.byteCount + view.signature.byteCount == input.count, "bytes outside of signed and signature")
  let head = encoded { output in
    DenyListView.writeHead(
      count: view.count, serial: view.serial, issuedSeconds: view.issuedSeconds, point: view.point, to: &output)
  }
  var ids: [UInt8] = []
  for index in 0..<view.count {
    let node = view.node(index)
    for byte in 0..<16 { ids.append(node.byte(byte)) }
  }
  expect(head + ids == view.signed.array, "a deny-list is written otherwise than it was read")
}
