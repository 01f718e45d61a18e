/// The responses of the status page, whole: a head and its body.
enum PageResponse {
  /// Of any response.
  static let headBytesMax = 512

  static func page(_ html: [UInt8], isHeadOnly: Bool) -> [UInt8] {
    var text = head("200 OK", type: "text/html; charset=utf-8", bodyBytes: html.count, more: "")
    if !isHeadOnly { text += html }
    return text
  }

  static func refusal(_ refusal: PageRefusal, isHeadOnly: Bool) -> [UInt8] {
    let status = "\(refusal.rawValue) \(refusal.text)"
    let body = Array("\(status)\n".utf8)
    // RFC 9110, 15.5.6.
    let more: StaticString = refusal == .methodNotAllowed ? "Allow: GET, HEAD\r\n" : ""
    var text = head(status, type: "text/plain", bodyBytes: body.count, more: more)
    if !isHeadOnly { text += body }
    return text
  }

  /// No script, no picture and no frame, whatever a name may have brought into the page; and no copy is kept.
  private static func head(_ status: String, type: StaticString, bodyBytes: Int, more: StaticString) -> [UInt8] {
    Array(
      """
      HTTP/1.1 \(status)\r
      Content-Type: \(type)\r
      Content-Length: \(bodyBytes)\r
      Connection: close\r
      Cache-Control: no-store\r
      Content-Security-Policy: default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; \
      base-uri 'none'; frame-ancestors 'none'\r
      X-Content-Type-Options: nosniff\r
      Referrer-Policy: no-referrer\r
      \(more)\r

      """.utf8)
  }
}
