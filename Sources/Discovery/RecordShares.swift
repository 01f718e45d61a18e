import Primitives

/// Limits each machine's share of the records that the built-in responder caches. When a cache is full, libavahi-core
/// adds no new record. The library forgets a record only at the end of the record's lifetime, which the sender chooses.
/// Without shares, one machine could keep the records of all other machines out of the cache.
///
/// A machine may add records if, afterwards, it has at most as many records as were free before (the rule of
/// `FairShare`). A machine is identified by its source address. Multicast DNS does not prove the source address, so a
/// sender with many addresses has many shares.
struct RecordShares {
  /// The maximum number of records in one cache. libavahi-core has a cache for each interface and IP version.
  static let recordsMax = Int(EmbeddedResponder.cachedRecordsMax)

  private struct Entry {
    let key: UInt64
    let source: UInt64
    var until: Instant
  }

  static let entryBytes = MemoryLayout<Entry>.stride

  private struct Cache {
    let interface: UInt32
    let isIPv4: Bool
    var entries: [Entry] = []
  }

  /// One entry for each interface and IP version that has records.
  private var caches: [Cache] = []
  /// A random number in each hash, so that senders cannot choose records with equal hashes.
  private let seed: UInt64

  init(seed: UInt64) { self.seed = seed }

  /// Returns whether the responder may read a packet that `PacketScreen.admits`. If the packet is admitted, its records
  /// are charged to `source`. `source` is 0 if unknown; a packet from an unknown source is always admitted.
  mutating func admits(
    _ packet: UnsafeRawBufferPointer, from source: UInt64, on interface: UInt32, now: Instant
  ) -> Bool {
    // The packet is a question, which is not cached, or its source is unknown.
    if source == 0 || packet[2] & 0x80 == 0 { return true }
    let cacheIndex = cache(interface, isIPv4: source >> 32 == 0xFFFF, now)
    caches[cacheIndex].entries.removeAll { $0.until <= now }
    let records = Self.records(of: packet, seed)
    var new: [(key: UInt64, seconds: UInt64)] = []
    for record in records {
      if let index = caches[cacheIndex].entries.firstIndex(where: { $0.key == record.key }) {
        // A lifetime of 0 is a goodbye: the record is deleted after one second (RFC 6762, section 10.1).
        caches[cacheIndex].entries[index].until = now + .seconds(max(record.seconds, 1))
      } else if record.seconds > 0 && !new.contains(where: { $0.key == record.key }) {
        new.append(record)
        if new.count > Self.recordsMax / 2 { return false }
      }
    }
    let held = caches[cacheIndex].entries.count { $0.source == source }
    if held + new.count > Self.recordsMax - caches[cacheIndex].entries.count { return new.isEmpty }
    for record in new {
      caches[cacheIndex].entries.append(Entry(key: record.key, source: source, until: now + .seconds(record.seconds)))
    }
    return true
  }

  private mutating func cache(_ interface: UInt32, isIPv4: Bool, _ now: Instant) -> Int {
    if let known = caches.firstIndex(where: { $0.interface == interface && $0.isIPv4 == isIPv4 }) { return known }
    // This call removes the caches of interfaces that no longer exist, because all their entries have expired.
    caches.removeAll { cache in cache.entries.allSatisfy { $0.until <= now } }
    caches.append(Cache(interface: interface, isIPv4: isIPv4))
    return caches.count - 1
  }

  /// The records of a well-formed packet. A record is returned as a hash of its name, type and data, and its lifetime
  /// in seconds.
  private static func records(of packet: UnsafeRawBufferPointer, _ seed: UInt64) -> [(key: UInt64, seconds: UInt64)] {
    var offset = 12
    for _ in 0..<PacketScreen.word(packet, 4) { offset = (PacketScreen.nameEnd(packet, offset) ?? packet.count) + 4 }
    let count = PacketScreen.word(packet, 6) + PacketScreen.word(packet, 8) + PacketScreen.word(packet, 10)
    var records: [(key: UInt64, seconds: UInt64)] = []
    for _ in 0..<count {
      guard let end = PacketScreen.nameEnd(packet, offset), packet.count - end >= 10 else { break }
      let type = PacketScreen.word(packet, end)
      let seconds = PacketScreen.word(packet, end + 4) << 16 | PacketScreen.word(packet, end + 6)
      let data = end + 10, dataEnd = data + PacketScreen.word(packet, end + 8)
      if dataEnd > packet.count { break }
      var key = hash(name: packet, offset, seed ^ UInt64(type))
      // One name has several encodings (RFC 1035, section 4.1.4).
      if let name = PacketScreen.nameInData(type, data), name < dataEnd {
        key = hash(name: packet, name, hash(packet[data..<name], key))
      } else {
        key = hash(packet[data..<dataEnd], key)
      }
      records.append((key, UInt64(seconds)))
      offset = dataEnd
    }
    return records
  }

  private static func hash(_ bytes: Slice<UnsafeRawBufferPointer>, _ start: UInt64) -> UInt64 {
    bytes.reduce(start) { mixed($0 ^ UInt64($1)) }
  }

  /// The hash of a name's labels in lower case. Two encodings of one name have the same hash.
  private static func hash(name packet: UnsafeRawBufferPointer, _ start: Int, _ seed: UInt64) -> UInt64 {
    var (offset, part, key) = (start, start, seed)
    while offset < packet.count, packet[offset] != 0 {
      let length = Int(packet[offset])
      if length >= 0xC0 {
        guard offset + 1 < packet.count else { break }
        offset = (length & 0x3F) << 8 | Int(packet[offset + 1])
        // `PacketScreen` admits only pointers that go back.
        guard offset < part else { break }
        part = offset
        continue
      }
      guard offset + 1 + length <= packet.count else { break }
      key = mixed(key ^ UInt64(length) << 8)
      for byte in packet[(offset + 1)..<(offset + 1 + length)] {
        key = mixed(key ^ UInt64((0x41...0x5A).contains(byte) ? byte | 0x20 : byte))
      }
      offset += 1 + length
    }
    return key
  }

  /// One step of the hash: adds an odd constant, and then mixes the bits as the finaliser of MurmurHash3 does.
  private static func mixed(_ value: UInt64) -> UInt64 {
    var mixed = value &+ 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ mixed >> 33) &* 0xFF51_AFD7_ED55_8CCD
    return mixed ^ mixed >> 33
  }
}
