import CSystem
import Frame
import Journal
import Primitives
import Text

/// Formats journal records as lines.
public enum EventFormatter {
  /// The line of record `sequence`. A long text continues in the records that follow, and the line includes the
  /// complete text. Nil if there is no such record, or if the record has no line of its own (`isShown`).
  public static func line(
    _ sequence: UInt64, of journal: JournalMapping, names: JournalNames = JournalNames()
  ) -> TextBuilder? {
    guard let record = journal.record(sequence), isShown(record) else { return nil }
    return line(record, rest(of: sequence, journal), names: names)
  }

  /// The message of a record, without time, level and line end.
  public static func message(
    _ sequence: UInt64, _ record: JournalRecord, of journal: JournalMapping, names: JournalNames
  ) -> TextBuilder {
    var text = TextBuilder()
    addMessage(of: record, rest(of: sequence, journal), names, to: &text)
    return text
  }

  /// Whether the record has its own line. Records that continue a text, or that store the name of a node, have none.
  public static func isShown(_ record: JournalRecord) -> Bool {
    let named = Event.peerNamed.rawValue
    return record.event != Event.textMore.rawValue && record.event != named
      && !(record.event == Event.repeated.rawValue && record.b == UInt64(named))
  }

  /// The continuation of a record's text in the records that follow.
  private static func rest(of sequence: UInt64, _ journal: JournalMapping) -> [UInt8] {
    let more = (1...Journal.textRecordsMax).prefix { distance in
      journal.record(sequence &+ UInt64(distance))?.event == Event.textMore.rawValue
    }
    // The text ends at the first zero byte, because zero bytes fill up the last record.
    var rest: [UInt8] = []
    for distance in more {
      guard let next = journal.record(sequence &+ UInt64(distance)) else { break }
      rest += textBytes(next, isLong: true)
    }
    return rest
  }

  /// A line such as `2026-11-21T13:27:57.123Z notice  link 3: up over wifi-direct with 0a1b2c3d… (bob)`, with a line
  /// feed. `rest`: the continuation of the text, from the records that follow.
  public static func line(
    _ record: JournalRecord, _ rest: [UInt8] = [], names: JournalNames = JournalNames()
  ) -> TextBuilder {
    var text = TextBuilder()
    addTime(record.wallNanoseconds, to: &text)
    text.add(byte: 0x20)
    let start = text.bytes.count
    if let level = Level(rawValue: record.level) { text.add(level.name) } else { text.add("level \(record.level)") }
    text.pad(from: start, to: 8)
    if record.link != 0xFF { text.add("link \(record.link): ") }
    addMessage(of: record, rest, names, to: &text)
    text.add(byte: 0x0A)
    return text
  }

  private static func addMessage(
    of record: JournalRecord, _ rest: [UInt8], _ names: JournalNames, to text: inout TextBuilder
  ) {
    if let event = Event(rawValue: record.event) {
      addMessage(eventText(event), record, rest, names, to: &text)
    } else {
      text.add(
        "event \(record.event), unknown to this version: \(record.a) \(record.b) \(record.c) \(record.node.text)")
    }
  }

  /// Adds a time in the format of RFC 3339, in UTC with milliseconds.
  public static func addTime(_ wallNanoseconds: Int64, to text: inout TextBuilder) {
    let nanoseconds = max(wallNanoseconds, 0)
    var seconds = time_t(nanoseconds / 1_000_000_000)
    var parts = tm()
    csystem_gmtime_r(&seconds, &parts)
    text.add(UInt64(parts.tm_year + 1900), digits: 4)
    text.add("-")
    text.add(UInt64(parts.tm_mon + 1), digits: 2)
    text.add("-")
    text.add(UInt64(parts.tm_mday), digits: 2)
    text.add("T")
    text.add(UInt64(parts.tm_hour), digits: 2)
    text.add(":")
    text.add(UInt64(parts.tm_min), digits: 2)
    text.add(":")
    text.add(UInt64(parts.tm_sec), digits: 2)
    text.add(".")
    text.add(UInt64(nanoseconds / 1_000_000 % 1000), digits: 3)
    text.add("Z")
  }

  /// Adds the summary of repeated records: the text of the repeated event, with “…” in place of numbers.
  private static func addRepeated(_ record: JournalRecord, _ names: JournalNames, to text: inout TextBuilder) {
    switch Event(rawValue: UInt16(clamping: record.b)) {
    case .none: text.add("event \(record.b)")
    case .report:
      text.add(message: textBytes(record, isLong: false))
      text.add("…")
    case .some(let event): addMessage(eventText(event), record, [], names, isSummary: true, to: &text)
    }
  }

  private static func addMessage(
    _ template: StaticString, _ record: JournalRecord, _ rest: [UInt8], _ names: JournalNames,
    isSummary: Bool = false, to text: inout TextBuilder
  ) {
    template.withUTF8Buffer { bytes in
      var index = 0
      while index < bytes.count {
        guard bytes[index] == UInt8(ascii: "{"), let end = bytes[index...].firstIndex(of: UInt8(ascii: "}")) else {
          text.add(byte: bytes[index])
          index += 1
          continue
        }
        let field = Field(UnsafeBufferPointer(rebasing: bytes[(index + 1)..<end]))
        addField(field, record, rest, names, isSummary, to: &text)
        index = end + 1
      }
    }
  }

  private static func addField(
    _ field: Field, _ record: JournalRecord, _ rest: [UInt8], _ names: JournalNames, _ isSummary: Bool,
    to text: inout TextBuilder
  ) {
    if field.isNamed("node") { return addNode(record.node, field, names, to: &text) }
    if field.isNamed("text") {
      let bytes = textBytes(record, isLong: field.isShown("long"))
      return text.add(message: bytes + rest)
    }
    if isSummary { return text.add("…") }
    let value = field.isNamed("a") ? record.a : field.isNamed("b") ? record.b : record.c
    addValue(value, field, record, names, to: &text)
  }

  private static func addNode(_ node: NodeID, _ field: Field, _ names: JournalNames, to text: inout TextBuilder) {
    if node == .none { return text.add("?") }
    text.add(field.isShown("full") ? node.text : node.shortText + "…")
    let name = names[node]
    if name.isEmpty { return }
    text.add(" (")
    text.add(untrusted: name)
    text.add(")")
  }

  private static func addValue(
    _ value: UInt64, _ field: Field, _ record: JournalRecord, _ names: JournalNames, to text: inout TextBuilder
  ) {
    let small = UInt8(clamping: value)
    if field.isShown("bearer") {
      text.add(BearerKind(rawValue: small)?.name ?? "a bearer")
    } else if field.isShown("close") {
      if let reason = CloseReason(rawValue: small) { text.add(reason.name) } else { text.add("reason \(value)") }
    } else if field.isShown("frame") {
      if let reason = FrameError(rawValue: small) { text.add(reason.name) } else { text.add("reason \(value)") }
    } else if field.isShown("type") {
      if let type = FrameType(rawValue: small) { text.add(name(of: type)) } else { text.add(value) }
    } else if field.isShown("session") {
      text.add(sessionFailureText(small))
    } else if field.isShown("seal") {
      text.add(sealRefusalText(small))
    } else if field.isShown("end") {
      text.add(value == 1 ? "the peer" : "this node")
    } else if field.isShown("direction") {
      text.add(value == 1 ? "inbound" : "dialled")
    } else if field.isShown("errno") {
      if value != 0 { text.add(": \(String(cString: strerror(CInt(small))))") }
    } else if field.isShown("signal") {
      if value != 0 { text.add(" by signal \(value)") }
    } else if field.isShown("lost") {
      if value != 0 { text.add(", and its records are lost") }
    } else if field.isShown("event") {
      addRepeated(record, names, to: &text)
    } else if field.isShown("hex") {
      text.add("0x")
      text.add(hex: value, digits: value >> 32 != 0 ? 16 : value >> 16 != 0 ? 8 : 4)
    } else if field.isShown("hint") {
      if value == 0 { text.add("no id") } else { text.add(hex: value >> 32, digits: 8) }
    } else if field.isShown("step") {
      text.add("\((Int64(bitPattern: value) &- Int64(bitPattern: record.b)) / 1_000_000_000)")
    } else if field.isShown("character") {
      text.add(untrusted: CollectionOfOne(small))
    } else {
      text.add(value)
    }
  }

  private static func name(of type: FrameType) -> StaticString {
    switch type {
    case .hello: "hello"
    case .ping: "ping"
    case .pong: "pong"
    case .goodbye: "goodbye"
    case .request: "request"
    case .advertisement: "advertisement"
    case .denyList: "deny-list"
    case .segment: "segment"
    case .acknowledgement: "acknowledgement"
    case .datagram: "datagram"
    case .reset: "reset"
    case .handshake: "handshake"
    case .sealed: "sealed"
    case .joined: "joined"
    }
  }

  /// The text in a record: the 16 bytes of its node id, or with `isLong` those and the fields a, b and c (40 bytes).
  static func textBytes(_ record: JournalRecord, isLong: Bool) -> ArraySlice<UInt8> {
    var bytes = isLong ? words(record) : []
    for index in 0..<NodeID.byteCount { bytes.append(record.node.byte(index)) }
    return bytes.prefix { $0 != 0 }
  }

  /// The text in the fields a, b and c of a record.
  static func wordBytes(_ record: JournalRecord) -> ArraySlice<UInt8> { words(record).prefix { $0 != 0 } }

  private static func words(_ record: JournalRecord) -> [UInt8] {
    var bytes: [UInt8] = []
    for word in [record.a, record.b, record.c] {
      for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word.littleEndian >> UInt64(shift * 8))) }
    }
    return bytes
  }
}

/// A field of an event's template (`eventText`): `name` or `name:format` between braces.
private struct Field {
  private let name: UnsafeBufferPointer<UInt8>
  private let shown: UnsafeBufferPointer<UInt8>

  init(_ bytes: UnsafeBufferPointer<UInt8>) {
    let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.count
    name = UnsafeBufferPointer(rebasing: bytes[..<colon])
    shown = UnsafeBufferPointer(rebasing: bytes[min(colon + 1, bytes.count)...])
  }

  func isNamed(_ other: StaticString) -> Bool { name.elementsEqual(UnsafeBufferPointer(other)) }
  func isShown(_ other: StaticString) -> Bool { shown.elementsEqual(UnsafeBufferPointer(other)) }
}

extension UnsafeBufferPointer<UInt8> {
  fileprivate init(_ text: StaticString) { self.init(start: text.utf8Start, count: text.utf8CodeUnitCount) }
}
