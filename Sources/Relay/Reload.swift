import Configuration
import Primitives
import Trust

/// The result of reading the configuration and the trust anchors again.
///
/// The anchors decide who gets in, so a reload reads them as a start does: with every list that is understood, and
/// without the nodes that a part may concern which is not understood. An invalid configuration changes no setting, and
/// the anchors in the configured directory are read nevertheless.
struct Reload {
  /// Whether the configuration was read.
  let isRead: Bool
  /// Whether the configuration was read and the anchors have no fault.
  let isDone: Bool
  /// The result in one line. The line names the changed keys that need a restart.
  let text: String
  /// Warnings about the configuration.
  let warnings: [String]

  /// Reads the configuration in `file` and the anchors. Stores in `configuration` the keys that apply at once.
  init(_ file: String?, _ configuration: inout Configuration, _ trust: TrustKeeper) {
    var refusal: String?
    var later = ""
    var warnings: [String] = []
    do throws(ConfigurationError) {
      let fresh = try Configuration.load(path: file)
      later = Self.keysForLater(configuration, fresh)
      warnings = fresh.warnings
      configuration.journal.level = fresh.journal.level
      configuration.trust.anchors = fresh.trust.anchors
    } catch {
      refusal = error.text
    }
    trust.readAnchors(in: configuration.trust.anchors)
    let fault = trust.anchorFault
    let counts = "\(trust.anchors.certificateCount) anchors, \(trust.anchors.listCount) revocation lists"
    var text = "reloaded: \(counts)"
    if let refusal {
      text = "not reloaded: \(refusal)"
      if trust.policy == .authority { text += "; [trust] anchors apply nevertheless: \(counts)" }
    }
    if let fault { text += "; \(fault)" }
    if !later.utf8.isEmpty { text += "; these apply at the next start: \(later)" }
    self.text = text
    self.warnings = warnings
    isRead = refusal == nil
    isDone = refusal == nil && fault == nil
  }

  /// The changed keys that apply at the next start.
  private static func keysForLater(_ configuration: Configuration, _ fresh: Configuration) -> String {
    var later = ""
    for key in configuration.keysChanged(in: fresh) {
      // The comparison is by bytes, because comparing Strings would add Unicode tables to the firmware.
      if ByteString(key).equals("[journal] level") || ByteString(key).equals("[trust] anchors") { continue }
      later += later.utf8.isEmpty ? key : ", " + key
    }
    return later
  }
}
