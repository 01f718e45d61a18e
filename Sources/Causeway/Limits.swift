internal import Transfer

/// The limits of the local API that this library checks itself. See docs/local-api.md, “Limits”, and docs/protocol.md,
/// “Services”.
public enum Limits {
  /// A message, in bytes.
  public static let messageBytesMax = 65_000
  /// An unreliable message, in bytes. It fits one frame over every bearer.
  public static let unreliableBytesMax = 1_900
  /// The context of an invitation, in bytes.
  public static let contextBytesMax = 4_096
  /// Names of applications and streams, farewells, and explanations of an ejection, in bytes of UTF-8.
  public static let nameBytesMax = 63
  /// The explanation for declining, in bytes of UTF-8.
  public static let explanationBytesMax = 200
  /// A pair `key=value` of discovery info, in bytes of UTF-8.
  public static let pairBytesMax = 255
  /// The addresses in one message.
  public static let addressesMax = 63

  // Bounds on data from the daemon. A daemon that exceeds one violates the protocol, and its connection is closed.

  /// A packet, in bytes, without its length field.
  static let packetBytes = 5...66_560
  /// Bytes of untaken messages in one session. Each message counts `messageOverheadBytes` more.
  static let windowBytes = 262_144
  static let messageOverheadBytes = 64
  /// Untaken bytes of one stream.
  static let streamWindowBytes = 131_072
  /// Bytes of a stream in one packet, in either direction.
  static let streamBytesMax = 4_096
  /// Untaken streams of one session. The daemon allows a client no more; further streams are refused.
  static let offeredStreamsMax = 32
  /// Services of one browse: 256 nodes with 16 each.
  static let sightingsMax = 4_096
  static let servicesOfNodeMax = 16
  static let serviceBytesMax = 2_048
  /// Unanswered offers of one session; more are refused. One member can fill it until the application answers: each
  /// offer takes two of the member's 32 streams, which its accepted transfers share.
  static let offersMax = 8
  /// How long a refused offer is repeated.
  static let turnMax = Duration.seconds(TransferLimits.turnSeconds)
  static let offerBegins = Duration.seconds(TransferLimits.beginSeconds)
  static let returnMax = Duration.seconds(TransferLimits.returnSeconds)
  static let farewellMax = Duration.seconds(TransferLimits.farewellSeconds)
  static let verdictsMax = Duration.seconds(TransferLimits.verdictSeconds)
  /// Members of a session, including members that left and were not yet reported.
  static let membersMax = 256
  /// Untaken events of a session other than messages.
  static let eventsMax = 4_096
  /// Open invitations to a service. The daemon keeps 32.
  static let invitationsMax = 64
  /// Requests in flight, not counting messages. Each may hold 4 KiB.
  static let requestsMax = 16
  /// Unsent bytes above which stream bytes wait at their writers.
  static let unsentBytesMax = 65_536
  /// Unsent bytes above which the daemon violates the protocol. 64 messages of 65,000 bytes and all requests in flight
  /// are half of it. The rest can only be answers to a daemon that sends events without end and does not read.
  static let unreadBytesMax = 8_388_608
  /// Message results that a client may await, unless the daemon allows fewer.
  static let resultsMax = 64
  /// A line of standard input, in bytes.
  static let lineBytesMax = 65_000
}

/// Checks arguments before they are sent, so that an error names the violated rule.
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

  /// Checks discovery info (RFC 6763, section 6.4). Returns its pairs in the order of their keys.
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

/// Untrusted text with its control characters replaced, safe to print on a terminal.
func harmless(_ text: String) -> String {
  guard text.unicodeScalars.contains(where: Syntax.isControl) else { return text }
  return String(String.UnicodeScalarView(text.unicodeScalars.map { Syntax.isControl($0) ? "\u{fffd}" : $0 }))
}
