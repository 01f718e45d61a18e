import StatusPage
import Testing

private let host = "192.168.49.1"

private func read(_ text: String) -> PageRequest { PageRequest(Array(text.utf8), host: host) }

private func refusal(_ text: String) -> PageRefusal? {
  if case .refused(let refusal, _) = read(text) { refusal } else { nil }
}

@Test func `GET requests the page, and HEAD its head`() {
  #expect(read("GET / HTTP/1.1\r\nHost: 192.168.49.1\r\n\r\n") == .page(isHeadOnly: false))
  #expect(read("HEAD / HTTP/1.1\r\nhOsT:\t192.168.49.1:80 \r\nAccept: */*\r\n\r\n") == .page(isHeadOnly: true))
  #expect(read("GET /?a=b HTTP/1.1\r\nHost: 192.168.49.1\r\n\r\n") == .page(isHeadOnly: false))
  #expect(read("GET http://192.168.49.1/ HTTP/1.1\r\nHost: other\r\n\r\n") == .page(isHeadOnly: false))
  #expect(read("GET / HTTP/1.0\r\n\r\n") == .page(isHeadOnly: false))
  #expect(read("\r\n\r\nGET / HTTP/1.1\nHost: 192.168.49.1\n\nwhatever follows") == .page(isHeadOnly: false))
}

@Test func `the head of a request may arrive in pieces`() {
  let whole = Array("GET / HTTP/1.1\r\nHost: 192.168.49.1\r\n\r\n".utf8)
  for count in 0..<whole.count { #expect(PageRequest(Array(whole[..<count]), host: host) == .incomplete) }
}

@Test func `methods other than GET and HEAD are refused`() {
  for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "BREW"] {
    #expect(refusal("\(method) / HTTP/1.1\r\nHost: 192.168.49.1\r\n\r\n") == .methodNotAllowed, "\(method)")
  }
}

@Test func `any path other than the root is not found`() {
  for target in [
    "/a", "/../etc/passwd", "//", "*", "/favicon.ico", "a", "http://192.168.49.1", "http://192.168.49.1/a",
  ] {
    #expect(refusal("GET \(target) HTTP/1.1\r\nHost: 192.168.49.1\r\n\r\n") == .notFound, "\(target)")
  }
}

/// By DNS rebinding, a page of another site in the phone's browser reaches this server under the name of that site.
@Test func `a request for another host is refused`() {
  for other in ["example.org", "192.168.49.1.example.org", "192.168.49.10", "192.168.49.1:8080", "", "[::1]"] {
    #expect(refusal("GET / HTTP/1.1\r\nHost: \(other)\r\n\r\n") == .misdirected, "\(other)")
  }
  #expect(refusal("GET http://example.org/ HTTP/1.1\r\nHost: 192.168.49.1\r\n\r\n") == .misdirected)
}

@Test func `bytes that are not HTTP are refused at once`() {
  for text in [
    "\u{16}\u{3}\u{1}", "GET /\0", "GET / HTTP/1.1\r\nHost: 192.168.49.1\r\nA: \u{1B}\r\n\r\n", "GET /\r\n\r\n",
    "GET  / HTTP/1.1\r\nHost: 192.168.49.1\r\n\r\n", " / HTTP/1.1\r\nHost: 192.168.49.1\r\n\r\n",
    "GET / HTTP/11\r\nHost: 192.168.49.1\r\n\r\n", "GET / HTTP/1.1 \r\nHost: 192.168.49.1\r\n\r\n", "x\r\n\r\n",
  ] { #expect(refusal(text) == .malformed, "\(text.debugDescription)") }
}

/// Fields that RFC 9112 forbids (sections 3.2, 5.1 and 5.2).
@Test func `header fields that proxies interpret differently are refused`() {
  for fields in [
    "", "Host: 192.168.49.1\r\nHost: 192.168.49.1\r\n", "Host : 192.168.49.1\r\n", "Host: 192.168.49.1\r\n A: b\r\n",
    "Host: 192.168.49.1\r\nno colon\r\n", "Host: 192.168.49.1\r\n: b\r\n", "Host: 192.168.49.1\rA: b\r\n",
  ] { #expect(refusal("GET / HTTP/1.1\r\n\(fields)\r\n") == .malformed, "\(fields.debugDescription)") }
}

@Test func `unsupported HTTP versions are refused with that reason`() {
  #expect(refusal("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == .versionNotSupported)
  #expect(refusal("GET / HTTP/3.0\r\nHost: 192.168.49.1\r\n\r\n") == .versionNotSupported)
  #expect(read("GET / HTTP/1.7\r\nHost: 192.168.49.1\r\n\r\n") == .page(isHeadOnly: false))
}

@Test func `the length of a request's head is limited`() {
  let start = "GET / HTTP/1.1\r\nHost: 192.168.49.1\r\nA: "
  let most = PageRequest.headBytesMax - start.utf8.count - 4
  #expect(read(start + String(repeating: "b", count: most) + "\r\n\r\n") == .page(isHeadOnly: false))
  #expect(read(start + String(repeating: "b", count: most + 3)) == .incomplete)
  #expect(refusal(start + String(repeating: "b", count: most + 4)) == .tooLong)
  #expect(refusal(String(repeating: "\r\n", count: PageRequest.headBytesMax / 2)) == .tooLong)
}

@Test func `a request with any byte changed is answered or waited for`() {
  let whole = Array("GET / HTTP/1.1\r\nHost: 192.168.49.1\r\n\r\n".utf8)
  var pages = 0
  for index in whole.indices {
    for byte in UInt8.min...UInt8.max {
      var changed = whole
      changed[index] = byte
      if case .page = PageRequest(changed, host: host) { pages += 1 }
    }
  }
  // Three kinds of change are accepted: to the same byte, to another minor version, and to the other case of a letter
  // in “Host”.
  #expect(pages > whole.count && pages < 2 * whole.count)
}
