import FuzzSupport
import StatusPage

/// Parses any bytes as a client's request to the status page, and shows the same bytes on the page as names.
func fuzzRequests(_ input: UnsafeRawBufferPointer) {
  let bytes = Array(input.prefix(PageRequest.headBytesMax))
  let whole = PageRequest(bytes, host: "192.168.49.1")
  // A request that arrives in pieces must be decided in the same way. Bytes behind the decision do not change the
  // decision.
  for count in 0..<min(bytes.count, 512) {
    let part = PageRequest(Array(bytes[..<count]), host: "192.168.49.1")
    if part != .incomplete { expect(part == whole, "decided otherwise by what follows") }
  }
  if bytes.count == PageRequest.headBytesMax { expect(whole != .incomplete, "it waits for more than there may be") }
  let name = String(decoding: bytes.prefix(63), as: UTF8.self)
  let page = PageContent(name: name, id: name, ssid: name, peers: [name]).html()
  expect(page.count <= PageContent.bytesMax, "a page of \(page.count) bytes")
  let plain = PageContent(name: "", id: "", ssid: "", peers: [""]).html()
  expect(marks(page) == marks(plain), "a name brought markup into the page")
}

private func marks(_ page: [UInt8]) -> Int { page.count { $0 == UInt8(ascii: "<") || $0 == UInt8(ascii: ">") } }
