import CSystem
import JSON
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
        object.set("places_used", use.slotsUsed)
        if let most = use.slotsMax { object.set("places_max", most) }
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
