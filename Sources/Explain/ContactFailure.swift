import Primitives
import Text

/// Why this node's trust refused a proven key.
public enum TrustFault: Equatable, Sendable {
  case revoked
  /// Another key is pinned under the name that the refused node claims, or under a similar name.
  case otherKeyPinned
  case noUsableKey
  /// A fault of the refused key's certificate chain. The text states the fault, and sometimes the remedy.
  case certificate(String)
}

/// Why an attempt to reach a node failed, or why its link ended.
public enum ContactCause: Equatable, Sendable {
  /// The dial failed. The text is the reason given by the system or the radio.
  case dialFailed(String)
  /// A stream was opened, but the TLS handshake timed out.
  case handshakeTimedOut
  case handshakeFailed(String)
  case refusedHere(TrustFault)
  /// The other node refused this node. `alert` is the number of its TLS alert, or nil if it sent a goodbye frame.
  case refusedThere(alert: UInt8?)
  /// The node that answered at the address has this node's own key.
  case ownKey
  /// The other node reports a link to a third node that has this node's key.
  case keyHeldElsewhere
  case fullHere
  case fullThere
  /// The link was up, and timed out because no frame arrived.
  case silent
  /// The link was up, and its byte stream broke. The text is the reason.
  case broken(String)
  /// The other daemon sent a goodbye and stopped.
  case stopped
  case protocolFault(String)
}

/// The last failure to reach one node or one address, over one bearer.
public struct ContactFailure: Sendable {
  /// The node; `.none` if no node has identified itself at the address. If the lower half of the id is zero, only
  /// discovery has announced the node, by an unproven upper half.
  public var node: NodeID
  public var bearer: BearerKind
  /// The address that was dialled or connected, as text.
  public var address: String
  public var cause: ContactCause
  public var secondsAgo: UInt64
  /// The number of consecutive failures with this node or address.
  public var count: UInt32

  public init(
    node: NodeID, bearer: BearerKind, address: String, cause: ContactCause, secondsAgo: UInt64, count: UInt32
  ) {
    self.node = node
    self.bearer = bearer
    self.address = address
    self.cause = cause
    self.secondsAgo = secondsAgo
    self.count = count
  }

  /// The age and number of the failures as text, such as “3 s ago, 5 times”.
  var when: String {
    count > 1
      ? joined(secondsText(secondsAgo), " ago, ", decimal(UInt64(count)), " times")
      : joined(secondsText(secondsAgo), " ago")
  }
}

/// The names and ids that a remedy mentions: the other node's name and id, and this node's own id.
struct RemedyNames {
  let peer: String
  let peerID: String
  let ownID: String
}

extension TrustFault {
  var text: String {
    switch self {
    case .revoked: "its key is revoked (deny-list)"
    case .otherKeyPinned: "another key is pinned under its name, or one that looks like it"
    case .noUsableKey: "it sent no certificate with an ECDSA P-256 key"
    case .certificate(let text): text
    }
  }

  func remedy(_ names: RemedyNames) -> String {
    switch self {
    case .revoked: joined("a revoked key stays revoked; on ", names.peer, ": causeway identity new --replace")
    case .otherKeyPinned:
      joined("if its owner changed the key: causeway identity trust ", names.peerID, " --name NAME; if not, do nothing")
    case .noUsableKey: joined("on ", names.peer, ": causeway identity import FILE, or causeway identity new --replace")
    case .certificate:
      joined("give it a valid certificate, or trust its key here: causeway identity trust ", names.peerID)
    }
  }
}

extension ContactCause {
  var text: String {
    switch self {
    case .dialFailed(let reason): joined("the dial failed: ", reason)
    case .handshakeTimedOut: "it accepts connections, but does not finish the TLS handshake"
    case .handshakeFailed(let reason): joined("the TLS handshake failed: ", reason)
    case .refusedHere(let fault): joined("refused here: ", fault.text)
    case .refusedThere(let alert): joined("it refuses this box: ", Self.text(alert))
    case .ownKey: "the node that answered has this box's own key"
    case .keyHeldElsewhere: "it reports a link to another node that has this box's own key"
    case .fullHere: "all links of this box are in use"
    case .fullThere: "all its links are in use"
    case .silent: "the link was up, then it timed out"
    case .broken(let reason): joined("the link was up, then it broke: ", reason)
    case .stopped: "its daemon has stopped"
    case .protocolFault(let reason): joined("the link was closed for a protocol fault: ", reason)
    }
  }

  func remedy(_ names: RemedyNames) -> String {
    switch self {
    case .dialFailed:
      joined(
        "check that it runs at this address: “causeway status” on ", names.peer, "; a firewall may block the port")
    case .handshakeTimedOut, .silent:
      joined("it hangs or is out of reach; on ", names.peer, ": systemctl restart causeway")
    case .handshakeFailed, .protocolFault: "compare “causeway version” on both, then: causeway log --level info"
    case .refusedHere(let fault): fault.remedy(names)
    case .refusedThere(alert: 44): "its deny-list contains this box's key; here: causeway identity new --replace"
    case .refusedThere(alert: 45): "issue a new certificate for this box: causeway identity import FILE --replace"
    case .refusedThere: joined("on ", names.peer, ": causeway identity trust ", names.ownID)
    case .keyHeldElsewhere: "if a disk was copied, on one of the two: causeway identity new --replace"
    case .ownKey:
      "if a disk was copied, on one of the two: causeway identity new --replace; else remove its own address from [ip] peers"
    case .fullHere: "raise [node] peers-max here, or link through another relay"
    case .fullThere: joined("raise [node] peers-max on ", names.peer, ", or link through another relay")
    case .broken: "the dialler tries again; if it keeps breaking: causeway log --level info"
    case .stopped: joined("on ", names.peer, ": systemctl start causeway")
    }
  }

  /// The priority of a cause as an explanation; the lowest rank is shown. Copied keys come first, then refusals, full
  /// link tables, failed handshakes, and failed dials or broken streams.
  var rank: Int {
    switch self {
    case .ownKey, .keyHeldElsewhere: 0
    case .refusedHere, .refusedThere: 3
    case .fullHere, .fullThere: 4
    case .handshakeTimedOut, .handshakeFailed, .protocolFault: 5
    case .dialFailed, .silent, .broken, .stopped: 6
    }
  }

  /// The meaning of a TLS alert from another node (RFC 8446, section 6.2). A Causeway node chooses its alerts in
  /// `PeerRefusal.alert`. Nil stands for a goodbye frame.
  private static func text(_ alert: UInt8?) -> String {
    switch alert {
    case nil, 46: "it does not trust this box's key or name"
    case 42: "it considers this box's certificate invalid"
    case 43: "this box's certificate does not allow this use"
    case 44: "this box's key or certificate is revoked there"
    case 45: "this box's certificate has expired"
    case 48: "none of its authorities issued this box's certificate"
    case .some(let other): joined("TLS alert ", decimal(UInt64(other)))
    }
  }
}
