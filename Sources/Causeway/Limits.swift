internal import Transfer

/// The limits of the daemon's local API that this library checks before it sends a request. See docs/local-api.md,
/// “Limits”, and docs/protocol.md, “Services”.
public enum Limits {
  /// The maximum size of a message, in bytes.
  public static let messageBytesMax = 65_000
  /// The maximum size of an unreliable message in bytes: a message of this size fits into one frame on every kind of
  /// link.
  public static let unreliableBytesMax = 1_900
  /// The maximum size of the context of an invitation, in bytes.
  public static let contextBytesMax = 4_096
  /// The maximum length of a name of an application or stream, of a farewell, and of the explanation for an ejection,
  /// in bytes of UTF-8.
  public static let nameBytesMax = 63
  /// The maximum length of the explanation for declining an invitation, in bytes of UTF-8.
  public static let explanationBytesMax = 200
  /// The maximum length of one pair `key=value` of discovery info, in bytes of UTF-8.
  public static let pairBytesMax = 255
  /// The maximum number of addresses to which one message is sent.
  public static let addressesMax = 63

  // Internal limits. Most of these limits bound data from the daemon. A daemon that exceeds such a limit violates the
  // protocol, and the connection is closed.

  /// The size of a packet, in bytes, without its length field.
  static let packetBytes = 5...66_560
  /// Bytes of messages in one session that the application has not read. Each message is counted with
  /// `messageOverheadBytes` in addition to its content.
  static let windowBytes = 262_144
  static let messageOverheadBytes = 64
  /// Bytes of one stream that the application has not read.
  static let streamWindowBytes = 131_072
  /// The maximum number of bytes of a stream in one packet, in either direction.
  static let streamBytesMax = 4_096
  /// Streams that members of one session opened and that the application has not received. Further streams are refused.
  /// The daemon allows a client at most as many streams in all.
  static let offeredStreamsMax = 32
  /// Services of one browse: 256 nodes with 16 services each.
  static let sightingsMax = 4_096
  static let servicesOfNodeMax = 16
  static let serviceBytesMax = 2_048
  /// Unanswered offers of one session; further offers are refused. A single member can use all of these slots: each
  /// offer needs two of the 32 streams of the member's application. An offer of a second member then replaces one of
  /// these offers.
  static let offersMax = 8
  static let offerBegins = Duration.seconds(TransferLimits.beginSeconds)
  static let returnMax = Duration.seconds(TransferLimits.returnSeconds)
  static let farewellMax = Duration.seconds(TransferLimits.farewellSeconds)
  static let verdictsMax = Duration.seconds(TransferLimits.verdictSeconds)
  /// Members of a session that the daemon has reported, and results of one message. A session has at most 64 members at
  /// a time.
  static let membersMax = 256
  /// Events of a session, other than messages, that the application has not received.
  static let eventsMax = 4_096
  /// Received invitations to a service that have not ended. The daemon keeps 32.
  static let invitationsMax = 64
  /// Requests for a new object, such as a session or an invitation, that wait for the daemon's answer. An invitation
  /// has a context of up to 4 KiB.
  static let requestsMax = 16
  /// While more bytes than this wait to be written to the daemon, `OutgoingStream.write` suspends.
  static let unsentBytesMax = 65_536
  /// If more bytes than this wait to be written to the daemon, the connection is closed, because the daemon does not
  /// read. Half of this limit is enough for 64 messages of 65,000 bytes and all requests in flight. Only a daemon that
  /// sends events without end and does not read causes more.
  static let unreadBytesMax = 8_388_608
  /// The number of message results that this client awaits at once, unless the daemon allows fewer.
  static let resultsMax = 64
  /// The maximum length of a line of standard input, in bytes.
  static let lineBytesMax = 65_000
}

/// Checks arguments before a request is sent, so that an error names the violated rule.
enum Syntax {
  static func name(_ text: String, _ what: String, _ bytesMax: Int, mayBeEmpty: Bool = true) throws(CausewayError) {
    guard text.utf8.count <= bytesMax else { throw CausewayError(.invalid, "\(what) has at most \(bytesMax) bytes") }
    guard mayBeEmpty || !text.isEmpty else { throw CausewayError(.invalid, "\(what) must not be empty") }
    guard !text.unicodeScalars.contains(where: isControl) else {
      throw CausewayError(.invalid, "\(what) must not contain control characters")
    }
  }

  /// Checks a service type: RFC 6335, section 5.1.
  static func serviceType(_ type: String) throws(CausewayError) {
    let bytes = Array(type.utf8)
    let isLegal =
      (1...15).contains(bytes.count) && bytes.first != 0x2d && bytes.last != 0x2d && !type.contains("--")
      && bytes.contains { (0x61...0x7a).contains($0) }
      && bytes.allSatisfy { (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2d }
    guard isLegal else {
      throw CausewayError(
        .invalid,
        "“\(type)” is not a service type: 1 to 15 of a-z, 0-9 and single inner hyphens, with a letter (RFC 6335)"
      )
    }
  }

  /// Checks discovery info (RFC 6763, section 6.4). Returns the pairs `key=value`, ordered by key.
  static func pairs(_ info: [String: String]) throws(CausewayError) -> [String] {
    var pairs: [String] = []
    for (key, value) in info.sorted(by: { $0.key < $1.key }) {
      let pair = "\(key)=\(value)"
      guard !key.isEmpty, key.utf8.allSatisfy({ (0x20...0x7e).contains($0) && $0 != 0x3d }) else {
        throw CausewayError(.invalid, "the key of “\(pair)” must be non-empty printable ASCII without “=”")
      }
      try name(pair, "“\(pair)”", Limits.pairBytesMax)
      pairs.append(pair)
    }
    guard pairs.count <= 255 else { throw CausewayError(.invalid, "discovery info has at most 255 pairs") }
    return pairs
  }

  static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
  }
}

/// The text with each control character replaced by U+FFFD, so that untrusted text is safe to print on a terminal.
func harmless(_ text: String) -> String {
  guard text.unicodeScalars.contains(where: Syntax.isControl) else { return text }
  return String(String.UnicodeScalarView(text.unicodeScalars.map { Syntax.isControl($0) ? "\u{fffd}" : $0 }))
}
