internal import Transfer

/// The limits of the local API that this library checks itself. docs/local-api.md, “Limits”; docs/protocol.md,
/// “Services”.
public enum Limits {
  /// A message, in bytes.
  public static let messageBytesMax = 65_000
  /// An unreliable message, in bytes: what fits one frame over every bearer.
  public static let unreliableBytesMax = 1_900
  /// The context of an invitation, in bytes.
  public static let contextBytesMax = 4_096
  /// Names of applications and streams, farewells, and the word to who is ejected, in bytes of UTF-8.
  public static let nameBytesMax = 63
  /// The explanation of who declines, in bytes of UTF-8.
  public static let explanationBytesMax = 200
  /// `key=value`, in bytes of UTF-8.
  public static let pairBytesMax = 255
  /// Those to whom one message can be addressed.
  public static let addressesMax = 63

  // What this process holds of a daemon's words. A daemon that goes beyond is broken, and its connection is ended.

  /// A packet without its length.
  static let packetBytes = 5...66_560
  /// Messages of one session that wait for the application: what its window allows, each counted with 64 bytes more.
  static let windowBytes = 262_144
  static let messageOverheadBytes = 64
  /// Bytes of one stream that wait for the application.
  static let streamWindowBytes = 131_072
  /// Bytes of a stream in one packet, in either direction.
  static let streamBytesMax = 4_096
  /// Streams of one session that wait to be looked at. The daemon has no more for a client; any more are refused.
  static let offeredStreamsMax = 32
  /// Services that a browse knows: 256 nodes with 16 each.
  static let sightingsMax = 4_096
  static let servicesOfNodeMax = 16
  static let serviceBytesMax = 2_048
  /// Offers of one session that came and are not answered; any more are refused. One member can fill it, until the
  /// application has answered: each offer takes two of its 32 streams, and those that it accepted need some too.
  static let offersMax = 8
  /// An offer that a member refused is made again for so long.
  static let turnMax = Duration.seconds(TransferLimits.turnSeconds)
  static let offerBegins = Duration.seconds(TransferLimits.beginSeconds)
  static let returnMax = Duration.seconds(TransferLimits.returnSeconds)
  static let farewellMax = Duration.seconds(TransferLimits.farewellSeconds)
  static let verdictsMax = Duration.seconds(TransferLimits.verdictSeconds)
  /// Members of a session, with those who left and were not told yet.
  static let membersMax = 256
  /// Events of a session that wait, beside its messages.
  static let eventsMax = 4_096
  /// Invitations to a service that wait; the daemon holds 32.
  static let invitationsMax = 64
  /// Requests under way, beside messages: each may hold 4 KiB.
  static let requestsMax = 16
  /// What waits for the daemon to read it: with more, bytes of streams wait at their writers.
  static let unsentBytesMax = 65_536
  /// 64 messages of 65,000 bytes and all requests under way are half of it. The rest can only be answers to a daemon that
  /// tells without end and does not read.
  static let unreadBytesMax = 8_388_608
  /// Results that a client may wait for, unless the daemon allows less.
  static let resultsMax = 64
  /// A line of standard input.
  static let lineBytesMax = 65_000
}

/// Arguments are checked before they travel, so that an error names the rule.
enum Syntax {
  static func name(_ text: String, _ what: String, _ bytesMax: Int, mayBeEmpty: Bool = true) throws(CausewayError) {
    guard text.utf8.count <= bytesMax else { throw CausewayError(.invalid, "\(what) has at most \(bytesMax) bytes") }
    guard mayBeEmpty || !text.isEmpty else { throw CausewayError(.invalid, "\(what) is not empty") }
    guard !text.unicodeScalars.contains(where: isControl) else {
      throw CausewayError(.invalid, "\(what) has no control characters")
    }
  }

  /// RFC 6335, section 5.1.
  static func serviceType(_ type: String) throws(CausewayError) {
    let bytes = Array(type.utf8)
    let isLegal =
      (1...15).contains(bytes.count) && bytes.first != 0x2d && bytes.last != 0x2d && !type.contains("--")
      && bytes.contains { (0x61...0x7a).contains($0) }
      && bytes.allSatisfy { (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2d }
    guard isLegal else {
      throw CausewayError(
        .invalid, "“\(type)” is no service type: 1 to 15 of a-z, 0-9 and single inner hyphens, with a letter (RFC 6335)"
      )
    }
  }

  /// RFC 6763, section 6.4. The pairs in the order of their keys.
  static func pairs(_ info: [String: String]) throws(CausewayError) -> [String] {
    var pairs: [String] = []
    for (key, value) in info.sorted(by: { $0.key < $1.key }) {
      let pair = "\(key)=\(value)"
      guard !key.isEmpty, key.utf8.allSatisfy({ (0x20...0x7e).contains($0) && $0 != 0x3d }) else {
        throw CausewayError(.invalid, "the key of “\(pair)” is not empty, printable ASCII, and without “=”")
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

/// Text of others without what a terminal obeys.
func harmless(_ text: String) -> String {
  guard text.unicodeScalars.contains(where: Syntax.isControl) else { return text }
  return String(String.UnicodeScalarView(text.unicodeScalars.map { Syntax.isControl($0) ? "\u{fffd}" : $0 }))
}
