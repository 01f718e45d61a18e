/// Builds the complete responses of the status page, with head and body.
enum PageResponse {
  /// The maximum length of a response head in bytes.
  static let headBytesMax = 512

  static func page(_ html: [UInt8], isHeadOnly: Bool) -> [UInt8] {
    response(status: Array("200 OK".utf8), type: "text/html; charset=utf-8", html, isHeadOnly: isHeadOnly)
  }

  static func refusal(_ refusal: PageRefusal, isHeadOnly: Bool) -> [UInt8] {
    var status = PageText()
    status.add(Int(refusal.rawValue))
    status.add(" ")
    status.add(refusal.text)
    // A 405 response lists the allowed methods (RFC 9110, section 15.5.6).
    let more: StaticString = refusal == .methodNotAllowed ? "Allow: GET, HEAD\r\n" : ""
    return response(
      status: status.bytes, type: "text/plain", status.bytes + [0x0A], more: more, isHeadOnly: isHeadOnly)
  }

  /// Builds a response. The header fields forbid scripts, remote pictures and frames, in case markup in a display name
  /// is not escaped by a fault. These fields also forbid caching.
  private static func response(
    status: [UInt8], type: StaticString, _ body: [UInt8], more: StaticString = "", isHeadOnly: Bool
  ) -> [UInt8] {
    var text = PageText()
    text.add("HTTP/1.1 ")
    text.bytes += status
    text.add("\r\nContent-Type: ")
    text.add(type)
    text.add("\r\nContent-Length: ")
    text.add(body.count)
    text.add(
      """
      \r
      Connection: close\r
      Cache-Control: no-store\r
      Content-Security-Policy: default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; \
      base-uri 'none'; frame-ancestors 'none'\r
      X-Content-Type-Options: nosniff\r
      Referrer-Policy: no-referrer\r

      """)
    text.add(more)
    text.add("\r\n")
    if !isHeadOnly { text.bytes += body }
    return text.bytes
  }
}
