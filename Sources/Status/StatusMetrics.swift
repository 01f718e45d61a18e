import JSON
import Text

/// The status as OpenMetrics text (OpenMetrics specification, version 1.0): the output of `causeway metrics`.
///
/// Names and labels are stable: later versions add names and labels, but remove none. docs/operations/read-the-box.md
/// lists them.
extension StatusReport {
  /// The metrics. The format requires the final “# EOF”, which Prometheus' older text format treats as a comment.
  public func metricsText() -> TextBuilder {
    var metrics = MetricsText()
    let box = root["box"]
    metrics.family("causeway_box", .info, "The box and its version")
    metrics.sample("_info", 1, ["id": box["id"].string, "name": box["name"].string, "version": box["version"].string])
    metrics.family("causeway_uptime_seconds", .gauge, "Time since the daemon started")
    metrics.sample("", box["uptime_seconds"].number)
    metrics.family("causeway_resident_bytes", .gauge, "Memory of the daemon")
    metrics.sample("", box["resident_bytes"].number)
    metrics.family("causeway_clock_synchronised", .gauge, "1 when the daemon knows that the clock is synchronised")
    metrics.sample("", box["clock_synchronised"].isTrue ? 1 : 0)
    metrics.family("causeway_alarms", .gauge, "Keys that need a decision")
    metrics.sample("", count(box["alarms"]))
    metrics.family("causeway_forwarded_frames", .counter, "Forwarded frames of other nodes")
    metrics.sample("_total", box["frames_forwarded"].number)
    metrics.family("causeway_forwarded_bytes", .counter, "Bytes of forwarded frames")
    metrics.sample("_total", box["bytes_forwarded"].number)
    metrics.family("causeway_refused_frames", .counter, "Frames that were refused or dropped, by reason")
    box["refusals"].forEachMember { metrics.sample("_total", $1.number, ["reason": $0]) }
    metrics.family("causeway_bearer_problem", .gauge, "1 when a bearer has a fault")
    root["bearers"].forEach { bearer in
      metrics.sample(
        "", bearer["problem"].string.utf8.isEmpty ? 0 : 1,
        ["bearer": bearer["name"].string, "state": bearer["state"].string])
    }
    metrics.family("causeway_peers", .gauge, "Nodes within reach")
    metrics.sample("", count(root["peers"]))
    addLinks(to: &metrics)
    return metrics.end()
  }

  private func addLinks(to metrics: inout MetricsText) {
    metrics.family("causeway_links", .gauge, "Links to neighbours that are up")
    var up: UInt64 = 0
    root["links"].forEach { if $0["state"].string.utf8.elementsEqual("up".utf8) { up += 1 } }
    metrics.sample("", up)
    addLinks(to: &metrics, "causeway_link_received_bytes", .counter, "Bytes received on a link", "bytes_received")
    addLinks(to: &metrics, "causeway_link_sent_bytes", .counter, "Bytes sent on a link", "bytes_sent")
    addLinks(to: &metrics, "causeway_link_queued_bytes", .gauge, "Bytes that wait for a link", "bytes_queued")
    addLinks(
      to: &metrics, "causeway_link_round_trip_microseconds", .gauge, "Round-trip time of the last ping",
      "round_trip_microseconds")
  }

  /// Adds a family with one sample for each link whose JSON has `member`.
  private func addLinks(
    to metrics: inout MetricsText, _ family: StaticString, _ type: MetricsText.FamilyType, _ help: StaticString,
    _ member: StaticString
  ) {
    metrics.family(family, type, help)
    root["links"].forEach { link in
      guard link["slot"].exists, link[member].exists else { return }
      metrics.sample(
        type == .counter ? "_total" : "", link[member].number,
        [
          "link": "\(link["slot"].number)", "bearer": link["bearer"].string, "id": link["peer"].string,
          "name": link["name"].string,
        ])
    }
  }

  private func count(_ array: JSONView) -> UInt64 {
    var count: UInt64 = 0
    array.forEach { _ in count += 1 }
    return count
  }
}

/// OpenMetrics text under construction: metric families with their samples.
struct MetricsText {
  enum FamilyType: UInt8 { case gauge, counter, info }

  private var text = TextBuilder()
  private var name: StaticString = ""

  mutating func family(_ name: StaticString, _ type: FamilyType, _ help: StaticString) {
    self.name = name
    text.add("# HELP \(name) \(help)\n# TYPE \(name) ")
    switch type {
    case .gauge: text.add("gauge\n")
    case .counter: text.add("counter\n")
    case .info: text.add("info\n")
    }
  }

  /// Adds a sample of the last family that was added. The values of labels are untrusted text.
  mutating func sample(
    _ suffix: StaticString, _ value: UInt64, _ labels: KeyValuePairs<StaticString, String> = [:]
  ) {
    text.add("\(name)\(suffix)")
    var isFirst = true
    for (label, content) in labels {
      text.add(isFirst ? "{\(label)=\"" : ",\(label)=\"")
      isFirst = false
      var plain = TextBuilder()
      plain.add(verbatim: content.utf8)
      for byte in plain.bytes {
        // `add(verbatim:)` has removed control characters, so only these two need an escape.
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.add(byte: UInt8(ascii: "\\")) }
        text.add(byte: byte)
      }
      text.add("\"")
    }
    text.add(isFirst ? " " : "} ")
    text.add(value)
    text.add("\n")
  }

  func end() -> TextBuilder {
    var text = text
    text.add("# EOF\n")
    return text
  }
}
