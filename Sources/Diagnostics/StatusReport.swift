import CFormats
import CSystem

/// What `causeway status` and `causeway peers` print, made from the JSON that the daemon answers.
public struct StatusReport {
  private let root: JSONView

  /// Fails for bytes that are no JSON object.
  public init(_ json: [UInt8]) throws(DiagnosticsError) {
    guard let root = JSONView(parsing: json) else {
      throw DiagnosticsError("the daemon's answer is not understood; is it of another version?")
    }
    self.root = root
  }

  /// Give back what jansson allocated; the report is not used afterwards.
  public func release() { root.release() }

  /// The whole box.
  public func text() -> TextBuilder {
    var text = TextBuilder()
    addBox(to: &text)
    addBearers(to: &text)
    addLinks(to: &text)
    text.add("\n")
    addPeers(to: &text)
    return text
  }

  /// The peers alone.
  public func peersText() -> TextBuilder {
    var text = TextBuilder()
    addPeers(to: &text)
    return text
  }

  private func addBox(to text: inout TextBuilder) {
    let box = root["box"]
    text.add(untrusted: box["name"].string.utf8)
    text.add("  \(box["id"].string)\n")
    text.add("causeway \(box["version"].string), up \(secondsText(box["uptime_seconds"].number)), ")
    text.add("epoch \(box["epoch"].number), \(bytesText(box["resident_bytes"].number)) resident, ")
    text.add(box["relay"].isTrue ? "relays" : "does not relay")
    text.add(", service “")
    text.add(untrusted: box["service_type"].string.utf8)
    text.add("”\nforwarded \(box["frames_forwarded"].number) frames, \(bytesText(box["bytes_forwarded"].number))")
    var isFirst = true
    box["refusals"].forEachMember { reason, count in
      text.add(isFirst ? "; refused " : ", ")
      text.add("\(reason) \(count.number)")
      isFirst = false
    }
    addLine("\ntrust ", box["trust"].string, to: &text)
    addLine("\nALARM ", box["alarm"].string, to: &text)
    text.add("\n\n")
  }

  private func addLine(_ label: StaticString, _ value: String, to text: inout TextBuilder) {
    if value.utf8.isEmpty { return }
    text.add(label)
    text.add(untrusted: value.utf8)
  }

  private func addBearers(to text: inout TextBuilder) {
    var table = Table(["BEARER", "STATE", "DETAIL"])
    root["bearers"].forEach { bearer in
      let detail = bearer["detail"].string
      let problem = bearer["problem"].string
      let separator = detail.utf8.isEmpty || problem.utf8.isEmpty ? "" : " — "
      table.add([bearer["name"].string, bearer["state"].string, detail + separator + problem])
    }
    table.write(to: &text)
    text.add("\n")
  }

  private func addLinks(to text: inout TextBuilder) {
    var table = Table(["LINK", "NEIGHBOUR", "BEARER", "STATE", "SINCE", "RTT", "RECEIVED", "SENT", "QUEUED", "ADDRESS"])
    root["links"].forEach { link in
      let roundTrip = link["round_trip_microseconds"]
      table.add([
        link["slot"].exists ? "\(link["slot"].number)" : "–", link["name"].string, link["bearer"].string,
        link["state"].string,
        secondsText(link["since_seconds"].number), roundTrip.exists ? millisecondsText(roundTrip.number) : "–",
        bytesText(link["bytes_received"].number), bytesText(link["bytes_sent"].number),
        bytesText(link["bytes_queued"].number),
        link["remote"].string + (link["inbound"].isTrue ? " (inbound)" : ""),
      ])
    }
    if table.isEmpty { text.add("no links\n") } else { table.write(to: &text) }
  }

  private func addPeers(to text: inout TextBuilder) {
    var table = Table(["PEER", "ID", "HOPS", "BEARER", "VIA", "INFO"])
    root["peers"].forEach { peer in
      var info = ""
      peer["info"].forEach { info += info.utf8.isEmpty ? $0.string : ", " + $0.string }
      let via = peer["via"].string
      let isNeighbour = via.utf8.elementsEqual(peer["id"].string.utf8)
      table.add([
        peer["name"].string, shortID(peer["id"].string), "\(peer["hops"].number)", peer["bearer"].string,
        isNeighbour ? "–" : name(ofPeer: via), info,
      ])
    }
    if table.isEmpty { text.add("no peers\n") } else { table.write(to: &text) }
  }

  private func name(ofPeer id: String) -> String {
    var name = shortID(id)
    root["peers"].forEach { if $0["id"].string.utf8.elementsEqual(id.utf8) { name = $0["name"].string } }
    return name
  }

  private func shortID(_ id: String) -> String { String(decoding: id.utf8.prefix(8), as: UTF8.self) }

  private func millisecondsText(_ microseconds: UInt64) -> String {
    microseconds < 10_000
      ? "\(microseconds / 1000).\(microseconds / 100 % 10) ms" : "\(microseconds / 1000) ms"
  }
}

/// A JSON value that jansson holds; absent members read as empty, zero and false.
struct JSONView {
  private let handle: OpaqueJSON?

  private init(_ handle: OpaqueJSON?) { self.handle = handle }

  /// Fails for bytes that are no JSON object.
  init?(parsing bytes: [UInt8]) {
    let parsed = bytes.withUnsafeBytes { raw in
      raw.withMemoryRebound(to: CChar.self) { json_loadb($0.baseAddress, $0.count, 0, nil) }
    }
    guard let parsed else { return nil }
    guard parsed.pointee.type == JSON_OBJECT else {
      json_decref(parsed)
      return nil
    }
    handle = parsed
  }

  func release() { if let handle { json_decref(handle) } }

  var exists: Bool { handle != nil }
  var string: String { json_string_value(handle).map { String(cString: $0) } ?? "" }
  var number: UInt64 { UInt64(clamping: json_integer_value(handle)) }
  var isTrue: Bool { handle.map { $0.pointee.type == JSON_TRUE } ?? false }

  subscript(key: StaticString) -> JSONView {
    key.withUTF8Buffer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { JSONView(json_object_get(handle, $0.baseAddress)) }
    }
  }

  func forEach(_ body: (JSONView) -> Void) {
    for index in 0..<json_array_size(handle) { body(JSONView(json_array_get(handle, index))) }
  }

  func forEachMember(_ body: (String, JSONView) -> Void) {
    var iterator = json_object_iter(handle)
    while let current = iterator {
      body(String(cString: json_object_iter_key(current)), JSONView(json_object_iter_value(current)))
      iterator = json_object_iter_next(handle, current)
    }
  }
}
