import JSON
import Text

/// The output of `causeway status` and `causeway peers`, made from the daemon's JSON.
public struct StatusReport {
  let root: JSONView
  private let columns: Int

  /// Parses the daemon's answer. `columns`: the width of the output. Throws if the answer is not a JSON object.
  public init(_ json: [UInt8], columns: Int = .max) throws(AccessError) {
    self.columns = columns
    guard let root = JSONView(parsing: json) else { throw .notUnderstood }
    self.root = root
  }

  /// Frees jansson's memory; the report must not be used afterwards.
  public func release() { root.release() }

  /// The complete status, as text for people.
  public func text() -> TextBuilder {
    var text = TextBuilder()
    addBox(to: &text)
    addBearers(to: &text)
    text.add("\n")
    addLinks(to: &text)
    text.add("\n")
    addPeers(to: &text)
    addStrangers(to: &text)
    return text
  }

  /// The table of peers alone.
  public func peersText() -> TextBuilder {
    var text = TextBuilder()
    addPeers(to: &text)
    return text
  }

  /// The table of links alone.
  public func linksText() -> TextBuilder {
    var text = TextBuilder()
    addLinks(to: &text)
    return text
  }

  /// The table of bearers alone, with the share of time that each radio spent scanning and dialling.
  public func bearersText() -> TextBuilder {
    var text = TextBuilder()
    addBearers(to: &text, withTimes: true)
    return text
  }

  /// The faults that the daemon reports: the fault of each bearer, by the bearer's name, and the most important alarm
  /// of trust.
  public func problems() -> [(name: String, text: String)] {
    var all: [(name: String, text: String)] = []
    root["bearers"].forEach { bearer in
      let problem = bearer["problem"].string
      if !problem.utf8.isEmpty { all.append((bearer["name"].string, problem)) }
    }
    let alarm = root["box"]["alarm"].string
    if !alarm.utf8.isEmpty { all.append(("alarm", alarm)) }
    return all
  }

  /// Whether the daemon reports a synchronised clock.
  public var isClockSynchronised: Bool { root["box"]["clock_synchronised"].isTrue }

  /// The daemon's version.
  public var version: String { root["box"]["version"].string }

  /// One member of the status as a JSON object.
  public func json(of part: StaticString) -> [UInt8] { JSONObject(part, root[part]).text() }

  private func addBox(to text: inout TextBuilder) {
    let box = root["box"]
    text.add(untrusted: box["name"].string.utf8)
    text.add("  \(box["id"].string)\n")
    let relays = box["relay"].isTrue ? "relays" : "does not relay"
    addLine(
      "causeway \(box["version"].string), up \(secondsText(box["uptime_seconds"].number)), "
        + "epoch \(box["epoch"].number), \(bytesText(box["resident_bytes"].number)) resident, "
        + "\(relays), service “\(box["service_type"].string)”", to: &text)
    var forwarded =
      "forwarded \(box["frames_forwarded"].number) frames, \(bytesText(box["bytes_forwarded"].number))"
    var isFirst = true
    box["refusals"].forEachMember { reason, count in
      forwarded += "\(isFirst ? "; refused" : ",") \(reason) \(count.number)"
      isFirst = false
    }
    addLine(forwarded, to: &text)
    addLine("trust ", box["trust"].string, to: &text)
    addLine("ALARM ", box["alarm"].string, to: &text)
    if box["encryption"].string.utf8.elementsEqual("none".utf8) {
      addLine(
        "encryption none: any node in the mesh can read and forge messages between this box and peers that have none too",
        to: &text)
    }
    text.add("\n")
  }

  private func addLine(_ label: StaticString, _ value: String, to text: inout TextBuilder) {
    if value.utf8.isEmpty { return }
    text.add(label)
    text.fill(Array(value.utf8), from: label.utf8CodeUnitCount, columns: columns)
    text.add("\n")
  }

  private func addLine(_ value: String, to text: inout TextBuilder) { addLine("", value, to: &text) }

  /// Adds the table of bearers. `withTimes`: whether to add the percentage of the uptime that each radio spent scanning
  /// and dialling.
  private func addBearers(to text: inout TextBuilder, withTimes: Bool = false) {
    var table = TextTable(["BEARER", "STATE"] + (withTimes ? ["SCAN", "DIAL"] : []) + ["DETAIL"])
    let seconds = max(root["box"]["uptime_seconds"].number, 1)
    root["bearers"].forEach { bearer in
      let detail = bearer["detail"].string
      let problem = bearer["problem"].string
      let separator = detail.utf8.isEmpty || problem.utf8.isEmpty ? "" : " — "
      let times = [bearer["scanning_milliseconds"], bearer["dialling_milliseconds"]].map { time in
        // The percentage: milliseconds divided by 10 times the uptime in whole seconds.
        time.exists ? "\(min(time.number / seconds / 10, 100)) %" : "–"
      }
      table.add(
        [bearer["name"].string, bearer["state"].string] + (withTimes ? times : []) + [detail + separator + problem])
    }
    table.write(to: &text, columns: columns)
  }

  private func addLinks(to text: inout TextBuilder) {
    var table = TextTable(
      ["LINK", "NEIGHBOUR", "BEARER", "STATE", "SINCE", "RTT", "RECEIVED", "SENT", "QUEUED", "ADDRESS"], cuttable: [1])
    root["links"].forEach { link in
      let roundTrip = link["round_trip_microseconds"]
      table.add([
        link["slot"].exists ? "\(link["slot"].number)" : "–", link["name"].string, link["bearer"].string,
        link["state"].string,
        ageText(link["since_seconds"].number), roundTrip.exists ? millisecondsText(roundTrip.number) : "–",
        bytesText(link["bytes_received"].number), bytesText(link["bytes_sent"].number),
        bytesText(link["bytes_queued"].number),
        link["remote"].string + (link["inbound"].isTrue ? " (inbound)" : ""),
      ])
    }
    if table.isEmpty { text.add("no links\n") } else { table.write(to: &text, columns: columns) }
  }

  private func addPeers(to text: inout TextBuilder) {
    var table = TextTable(["PEER", "ID", "HOPS", "BEARER", "VIA", "INFO"], cuttable: [0, 4])
    root["peers"].forEach { peer in
      var info = ""
      peer["info"].forEach { info += info.utf8.isEmpty ? $0.string : ", " + $0.string }
      let via = peer["via"].string
      let isNeighbour = via.utf8.elementsEqual(peer["id"].string.utf8)
      table.add([
        peer["name"].string, shortID(peer["id"].string), "\(peer["hops"].number)",
        peer["bearer"].string + (peer["parked"].isTrue ? " (parked)" : ""),
        isNeighbour ? "–" : name(ofPeer: via), info,
      ])
    }
    if table.isEmpty { text.add("no peers\n") } else { table.write(to: &text, columns: columns) }
    addPeersInClear(to: &text)
  }

  /// Lists the peers without end-to-end encryption.
  private func addPeersInClear(to text: inout TextBuilder) {
    var peers = ""
    root["peers"].forEach { peer in
      guard peer["in_clear"].isTrue else { return }
      peers += "\(peers.utf8.isEmpty ? "" : ", ")\(shown(peer["name"].string)) (\(shortID(peer["id"].string)))"
    }
    if peers.utf8.isEmpty { return }
    text.add("\n")
    addLine("Not sealed, so any node in the mesh can read and forge their messages: \(peers)", to: &text)
  }

  private func addStrangers(to text: inout TextBuilder) {
    var table = TextTable(["REFUSED", "NAME", "TIMES", "WHY"], cuttable: [1])
    root["box"]["refused_strangers"].forEach { stranger in
      let name = stranger["name"].string
      table.add([
        stranger["id"].string, name.utf8.isEmpty ? "–" : name, "\(stranger["count"].number)", stranger["reason"].string,
      ])
    }
    if table.isEmpty { return }
    text.add("\n")
    table.write(to: &text, columns: columns)
  }

  /// The output of `causeway identity alarms`. The suggested commands contain ids instead of names, because names are
  /// untrusted text.
  public func alarmsText() -> TextBuilder {
    var text = TextBuilder()
    root["box"]["alarms"].forEach { alarm in
      let name = alarm["name"].string, offeredName = alarm["offered_name"].string, offered = alarm["offered"].string
      text.add("“")
      text.add(untrusted: name.utf8)
      text.add("” is \(alarm["pinned"].string), pinned\n")
      let count = alarm["count"].number
      text.add("  but \(offered) was seen \(count == 1 ? "once" : "\(count) times") as “")
      text.add(untrusted: offeredName.utf8)
      text.add(name.utf8.elementsEqual(offeredName.utf8) ? "”\n" : "”, which looks like it\n")
      text.add("  its owner changed the key:  causeway identity accept \(offered)\n")
      text.add("  it is somebody else:        causeway identity keep \(offered)\n")
      text.add("  decide later, warn again:   causeway identity dismiss \(offered)\n")
    }
    if text.bytes.isEmpty { text.add("no alarms\n") }
    return text
  }

  /// The nodes that a name or the start of an id on a command line can denote: peers, refused nodes, and the keys of
  /// alarms. `source` is the address and state under which the box knows the node.
  public func candidates() -> [(id: String, name: String, source: String)] {
    var all: [(id: String, name: String, source: String)] = []
    root["peers"].forEach { all.append(($0["id"].string, $0["name"].string, source(ofPeer: $0))) }
    root["box"]["refused_strangers"].forEach {
      all.append(($0["id"].string, $0["name"].string, "refused: \(shown($0["reason"].string))"))
    }
    root["box"]["alarms"].forEach {
      let pin = "“\(shown($0["name"].string))”, which is pinned to \($0["pinned"].string)"
      all.append(($0["offered"].string, $0["offered_name"].string, "refused: it used the name \(pin)"))
      all.append(($0["pinned"].string, $0["name"].string, "pinned"))
    }
    return all
  }

  /// The addresses of a peer's links, or the path to the peer.
  private func source(ofPeer peer: JSONView) -> String {
    var text = ""
    root["links"].forEach { link in
      guard link["peer"].string.utf8.elementsEqual(peer["id"].string.utf8) else { return }
      text += "\(text.utf8.isEmpty ? "linked" : ", and") over \(link["bearer"].string), \(link["remote"].string)"
    }
    if !text.utf8.isEmpty { return text }
    let hops = peer["hops"].number
    if hops <= 1 { return "a neighbour over \(peer["bearer"].string)" }
    return "\(hops) hops away, through \(shown(name(ofPeer: peer["via"].string)))"
  }

  private func name(ofPeer id: String) -> String {
    var name = shortID(id)
    root["peers"].forEach { if $0["id"].string.utf8.elementsEqual(id.utf8) { name = $0["name"].string } }
    return name
  }

  private func shortID(_ id: String) -> String { String(decoding: id.utf8.prefix(8), as: UTF8.self) }
}
