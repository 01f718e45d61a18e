import CFormats
import CSystem
import Primitives
import Text

extension StatusSnapshot {
  /// The JSON text (RFC 8259) of `causeway status --json`. Keys are stable: later versions add keys, but remove none.
  /// `withSecrets`: whether secrets are included; only the operator may see them.
  public func toJSON(withSecrets: Bool) -> [UInt8] {
    let root = JSONObject()
    root.set("box", boxJSON())
    root.set(
      "bearers",
      JSONArray(bearers) { bearer, object in
        object.set("name", bearer.name)
        object.set("state", bearer.state)
        let hasMore = withSecrets && !bearer.secret.utf8.isEmpty
        object.set("detail", hasMore ? "\(bearer.detail), \(bearer.secret)" : bearer.detail)
        object.set("problem", bearer.problem)
        guard let use = bearer.use else { return }
        object.set("places_used", use.places)
        if let most = use.placesMax { object.set("places_max", most) }
        if let scanning = use.scanning { object.set("scanning_milliseconds", scanning) }
        if let dialling = use.dialling { object.set("dialling_milliseconds", dialling) }
      })
    root.set(
      "links",
      JSONArray(links) { link, object in
        if let slot = link.slot { object.set("slot", UInt64(slot)) }
        object.set("peer", link.peer.text)
        object.set("name", link.name)
        object.set("bearer", "\(link.bearer.name)")
        object.set("state", link.state)
        object.set("remote", link.remote)
        object.set("inbound", link.isInbound)
        object.set("since_seconds", link.sinceSeconds)
        if let roundTrip = link.roundTripMicroseconds { object.set("round_trip_microseconds", roundTrip) }
        object.set("bytes_received", link.bytesReceived)
        object.set("bytes_sent", link.bytesSent)
        object.set("bytes_queued", link.bytesQueued)
        guard let segments = link.segments else { return }
        object.set("segments_sent", segments.sent)
        object.set("segments_resent", segments.resent)
      })
    root.set(
      "peers",
      JSONArray(peers) { peer, object in
        object.set("id", peer.id.text)
        object.set("name", peer.name)
        object.set("service_type", peer.serviceType)
        object.set("hops", UInt64(peer.hops))
        object.set("bearer", "\(peer.bearer.name)")
        object.set("via", peer.via.text)
        object.set("in_clear", peer.isInClear)
        object.set("parked", peer.isParked)
        let info = JSONArray()
        for pair in peer.info { info.append(pair) }
        object.set("info", info)
      })
    return root.text()
  }

  private func boxJSON() -> JSONObject {
    let object = JSONObject()
    object.set("name", box.name)
    object.set("id", box.id.text)
    object.set("epoch", box.epoch)
    object.set("version", box.version)
    object.set("service_type", box.serviceType)
    object.set("relay", box.isRelay)
    object.set("uptime_seconds", box.uptimeSeconds)
    object.set("resident_bytes", box.residentBytes)
    object.set("frames_forwarded", box.framesForwarded)
    object.set("bytes_forwarded", box.bytesForwarded)
    object.set("trust", box.trust)
    object.set("clock_synchronised", box.isClockSynchronised)
    object.set("alarm", box.alarm)
    object.set("encryption", box.encryption)
    object.set(
      "talkers",
      JSONArray(box.talkers) { talker, object in
        object.set("id", talker.id.text)
        object.set("name", talker.name)
        object.set("bytes", talker.bytes)
      })
    object.set(
      "alarms",
      JSONArray(box.alarms) { alarm, object in
        object.set("name", alarm.name)
        object.set("pinned", alarm.pinned.text)
        object.set("offered", alarm.offered.text)
        object.set("offered_name", alarm.offeredName)
        object.set("count", alarm.count)
      })
    object.set(
      "refused_strangers",
      JSONArray(box.strangers) { stranger, object in
        object.set("id", stranger.id.text)
        object.set("name", stranger.name)
        object.set("reason", stranger.reason)
        object.set("count", stranger.count)
      })
    let refusals = JSONObject()
    for refusal in box.refusals { refusals.set(refusal.reason, refusal.count) }
    object.set("refusals", refusals)
    return object
  }
}

/// The resident memory of this process in bytes, from /proc/self/statm; 0 if the file cannot be read.
public func residentMemoryBytes() -> UInt64 {
  let descriptor = csystem_open("/proc/self/statm", O_RDONLY | O_CLOEXEC, 0)
  guard descriptor >= 0 else { return 0 }
  defer { close(descriptor) }
  var text = [UInt8](repeating: 0, count: 128)
  let count = text.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
  let fields = text[..<max(count, 0)].split(separator: UInt8(ascii: " "))
  guard fields.count > 1 else { return 0 }
  var pages: UInt64 = 0
  for byte in fields[1] { pages = pages &* 10 &+ UInt64(byte &- 0x30) }
  return pages &* UInt64(sysconf(CInt(_SC_PAGESIZE)))
}

/// A JSON object under construction. jansson owns the values. The object is released once: by `text`, or by the object
/// or array that it is added to.
final class JSONObject {
  fileprivate let handle = json_object()!

  init() {}

  /// Creates an object with one member. The value of the member is shared with another JSON value.
  init(_ key: StaticString, _ part: JSONView) {
    key.withUTF8Buffer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { _ = json_object_set(handle, $0.baseAddress, part.handle) }
    }
  }

  func set(_ key: StaticString, _ value: String) { set(key, jsonString(value)) }
  func set(_ key: StaticString, _ value: UInt64) { set(key, json_integer(json_int_t(clamping: value))) }
  func set(_ key: StaticString, _ value: Bool) { set(key, value ? json_true() : json_false()) }
  func set(_ key: StaticString, _ value: JSONObject) { set(key, value.handle) }
  func set(_ key: StaticString, _ value: JSONArray) { set(key, value.handle) }

  private func set(_ key: StaticString, _ value: OpaqueJSON?) {
    key.withUTF8Buffer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { _ = json_object_set_new(handle, $0.baseAddress, value) }
    }
  }

  /// Returns the JSON text of this object, and releases the object. The text contains only printable ASCII and line
  /// feeds, so it is harmless on a terminal.
  func text() -> [UInt8] {
    defer { json_decref(handle) }
    return dumped(handle)
  }
}

extension JSONView {
  /// The JSON text of this value, in the form of `JSONObject.text`.
  func jsonText() -> [UInt8] { dumped(handle) }
}

/// A JSON array under construction.
final class JSONArray {
  fileprivate let handle = json_array()!

  init() {}

  init<Element>(_ elements: [Element], _ fill: (Element, JSONObject) -> Void) {
    for element in elements {
      let object = JSONObject()
      fill(element, object)
      json_array_append_new(handle, object.handle)
    }
  }

  func append(_ text: String) { json_array_append_new(handle, jsonString(text)) }
}

private func dumped(_ value: OpaqueJSON?) -> [UInt8] {
  guard let text = json_dumps(value, jsonIndent2 | jsonEnsureASCII) else { return Array("{}".utf8) }
  defer { free(text) }
  var bytes: [UInt8] = []
  for byte in UnsafeRawBufferPointer(start: text, count: strlen(text)) {
    // DEL is the only control character that jansson does not escape.
    if byte == 0x7F { bytes += Array("\\u007f".utf8) } else { bytes.append(byte) }
  }
  return bytes + [0x0A]
}

/// Flags of json_dumps. In jansson.h they are macros that Swift cannot import.
private let jsonIndent2 = 2
private let jsonEnsureASCII = 0x40

typealias OpaqueJSON = UnsafeMutablePointer<json_t>

/// Creates a JSON string. A Swift string is always valid UTF-8, as jansson requires.
private func jsonString(_ text: String) -> OpaqueJSON? {
  var text = text
  return text.withUTF8 { bytes in
    bytes.withMemoryRebound(to: CChar.self) { json_stringn($0.baseAddress ?? emptyText, $0.count) }
  }
}

var emptyText: UnsafePointer<CChar> {
  UnsafeRawPointer(("" as StaticString).utf8Start).assumingMemoryBound(to: CChar.self)
}
