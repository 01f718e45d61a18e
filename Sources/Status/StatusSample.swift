import JSON
import Primitives
import Text

/// The counters of one status, parsed from the daemon's JSON, for comparison with another status.
public struct StatusSample {
  /// A link to a neighbour.
  public struct Link {
    /// The slot of the link; nil during the handshake.
    public var slot: UInt64?
    public var peer: [UInt8] = []
    public var name: [UInt8] = []
    public var bearer: [UInt8] = []
    public var state: [UInt8] = []
    public var sinceSeconds: UInt64 = 0
    public var roundTripMicroseconds: UInt64?
    public var received: UInt64 = 0
    public var sent: UInt64 = 0
    public var queued: UInt64 = 0
    /// TCP segments; both counts are nil for a link that does not use TCP.
    public var segmentsSent: UInt64?
    public var segmentsResent: UInt64?

    public init() {}
  }

  /// A bearer. Discovery sources, which have no links, are not included.
  public struct Radio {
    public var name: [UInt8] = []
    public var state: [UInt8] = []
    /// The use of the radio; all four values are nil for a bearer without a limited number of neighbours.
    public var slotsUsed: UInt64?
    public var slotsMax: UInt64?
    public var scanningMilliseconds: UInt64?
    public var diallingMilliseconds: UInt64?

    public init() {}
  }

  /// A node whose frames this node forwards.
  public struct Talker {
    public var id: [UInt8] = []
    public var name: [UInt8] = []
    public var bytes: UInt64 = 0

    public init() {}
  }

  public var name: [UInt8] = []
  public var id: [UInt8] = []
  public var epoch: UInt64 = 0
  public var uptimeSeconds: UInt64 = 0
  public var residentBytes: UInt64 = 0
  public var framesForwarded: UInt64 = 0
  public var bytesForwarded: UInt64 = 0
  /// The number of refused or dropped frames, for all reasons.
  public var framesRefused: UInt64 = 0
  public var peerCount: UInt64 = 0
  /// The faults that the daemon reports, alarms first.
  public var problems: [[UInt8]] = []
  public var links: [Link] = []
  public var radios: [Radio] = []
  public var talkers: [Talker] = []

  public init() {}

  /// Parses the daemon's answer. Throws if the answer is not a JSON object. A missing number is read as zero.
  public init(_ json: [UInt8]) throws(AccessError) {
    let report = try StatusReport(json)
    defer { report.release() }
    let box = report.root["box"]
    name = box["name"].bytes
    id = box["id"].bytes
    epoch = box["epoch"].number
    uptimeSeconds = box["uptime_seconds"].number
    residentBytes = box["resident_bytes"].number
    framesForwarded = box["frames_forwarded"].number
    bytesForwarded = box["bytes_forwarded"].number
    var refused: UInt64 = 0
    box["refusals"].forEachMember { refused &+= $1.number }
    framesRefused = refused
    var peers: UInt64 = 0
    report.root["peers"].forEach { _ in peers += 1 }
    peerCount = peers
    for (source, text) in report.problems().reversed() { problems.append(Array("\(source): \(text)".utf8)) }
    links = Self.links(report.root["links"])
    radios = Self.radios(report.root["bearers"])
    talkers = Self.talkers(box["talkers"])
  }

  private static func links(_ array: JSONView) -> [Link] {
    var links: [Link] = []
    array.forEach { entry in
      var link = Link()
      link.slot = entry["slot"].count
      link.peer = entry["peer"].bytes
      link.name = entry["name"].bytes
      link.bearer = entry["bearer"].bytes
      link.state = entry["state"].bytes
      link.sinceSeconds = entry["since_seconds"].number
      link.roundTripMicroseconds = entry["round_trip_microseconds"].count
      link.received = entry["bytes_received"].number
      link.sent = entry["bytes_sent"].number
      link.queued = entry["bytes_queued"].number
      link.segmentsSent = entry["segments_sent"].count
      link.segmentsResent = entry["segments_resent"].count
      links.append(link)
    }
    return links
  }

  /// Returns one entry for each bearer. If the status has two entries for a bearer, the entry with the use of the radio
  /// is kept. The other entry is that of its network interface.
  private static func radios(_ array: JSONView) -> [Radio] {
    var radios: [Radio] = []
    array.forEach { entry in
      var radio = Radio()
      radio.name = entry["name"].bytes
      radio.state = entry["state"].bytes
      radio.slotsUsed = entry["places_used"].count
      radio.slotsMax = entry["places_max"].count
      radio.scanningMilliseconds = entry["scanning_milliseconds"].count
      radio.diallingMilliseconds = entry["dialling_milliseconds"].count
      guard isBearer(radio.name) else { return }
      guard let index = radios.firstIndex(where: { $0.name == radio.name }) else { return radios.append(radio) }
      if radio.slotsUsed != nil { radios[index] = radio }
    }
    return radios
  }

  private static func talkers(_ array: JSONView) -> [Talker] {
    var talkers: [Talker] = []
    array.forEach { entry in
      var talker = Talker()
      talker.id = entry["id"].bytes
      talker.name = entry["name"].bytes
      talker.bytes = entry["bytes"].number
      talkers.append(talker)
    }
    return talkers
  }
}

/// Whether this is the name of a bearer. Other entries of the status are discovery sources, or faults of other parts.
private func isBearer(_ name: [UInt8]) -> Bool {
  (0...UInt8.max).contains { BearerKind(rawValue: $0).map { name.elementsEqual("\($0.name)".utf8) } ?? false }
}

extension JSONView {
  fileprivate var bytes: [UInt8] { Array(string.utf8) }
  /// The number, or nil if the member is absent.
  fileprivate var count: UInt64? { exists ? number : nil }
}
