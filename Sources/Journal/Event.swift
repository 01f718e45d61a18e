/// The event of a record. Raw values are stored in journal files and never reused. `eventText` (Diagnostics) defines
/// the text of each event and alone formats them.
///
/// The comments define the record's integers `a`, `b`, `c` and its 16 bytes (`node` or `text`). The record's `link`
/// byte is the link slot, or 0xFF for none. Reserved raw values belonged to events of former versions. Journals may
/// still contain them, so no new event uses them.
public enum Event: UInt16, Sendable {
  // The box. Reserved: 5–9.
  /// a: boot epoch · b: process id · node: own id
  case boxStarted = 1
  /// a: the signal that requested it, or 0
  case boxStopped = 2
  /// The last message before a crash. Its first 40 bytes are in a, b, c and the 16 bytes; `textMore` continues it.
  case panic = 3
  /// a: new wall-clock offset (ns, two's complement) · b: previous offset
  case clockStepped = 4
  /// A text message, “source: text”, stored like `panic`
  case report = 10
  /// The next 40 bytes of the text that the previous record began
  case textMore = 11
  /// Repeated records that were counted instead of written. a: count · b: their event · c: the period in seconds ·
  /// link, node and text: those of one of them
  case repeated = 12
  /// The journal file was removed or truncated, and was restored. a: 1 if its records were lost
  case journalRestored = 13

  // Links. Reserved: 23–26, 29–32, 35, 36.
  /// A stream was opened and the TLS handshake begins. a: bearer · b: 1 inbound, 0 dialled
  case linkOpening = 20
  /// The link is in use. a: bearer · b: agreed capabilities · c: maximum frame size in bytes · node: neighbour
  case linkUp = 21
  /// a: bearer · b: reason (link) · c: uptime in seconds · node: neighbour
  case linkDown = 22
  /// Nothing was received within the timeout. node: neighbour
  case neighbourDead = 27
  /// A second link to the same neighbour was opened, and one of them is closed. a: bearer kept · b: bearer closed ·
  /// node: neighbour
  case linkDuplicate = 28
  /// All link slots are in use. a: links · b: limit
  case linkSlotsFull = 33
  /// This node dialled itself. a: bearer
  case selfDialled = 34
  /// The neighbour accepts no frames, but its radio responds. a: bytes queued · node: neighbour
  case linkStalled = 37
  /// The neighbour accepts frames again. a: bytes still queued · node: neighbour
  case linkResumed = 38
  /// The link breaks often, so it is used only when no other route exists. a: bearer · b: seconds · node: neighbour
  case linkQuarantined = 39
  /// The advertised cost was updated to the measured one. a: bearer · b: new cost · c: old cost · node: neighbour
  case linkCostStated = 40
  /// Traffic moved to another one of several links to a neighbour. a: its bearer · b: previous bearer · node: neighbour
  case linkCarries = 41
  /// The link was parked, and both ends keep its state. a: bearer · b: uptime in milliseconds · node: neighbour
  case linkParked = 42
  /// A link is closed because the neighbour accepts no frames. a: duration in seconds · b: bytes queued · node:
  /// neighbour
  case linkTakesNothing = 43

  // Frames. Reserved: 51–55.
  /// a: reason (frame) · node: neighbour
  case frameRefused = 50

  // Discovery and dialling. Reserved: 74, 75.
  /// a: bearer · b: first 8 bytes of the claimed id
  case candidateFound = 70
  /// a: bearer · b: first 8 bytes of the claimed id
  case candidateLost = 71
  /// a: bearer · b: token
  case dialStarted = 72
  /// a: bearer · b: token · text: reason
  case dialFailed = 73
  /// a: candidates · b: limit
  case candidatesFull = 76

  // Mesh. Reserved: 90, 91, 95, 99.
  /// a: hops · b: bearer of the first hop · node: peer
  case peerAppeared = 92
  /// node: peer
  case peerVanished = 93
  /// a: sequence · b: epoch · node: origin
  case advertisementAccepted = 94
  /// The own advertisement was flooded. a: sequence
  case advertisementSent = 96
  /// Another node uses this node's key. a: its epoch · b: own epoch
  case identityDuplicated = 97
  /// a: known nodes · b: limit
  case nodesFull = 98
  /// This node raised its epoch to supersede advertisements from before its restart. a: previous epoch · b: new epoch
  case epochRaised = 100
  /// A peer's display name, which readers use in the lines of other records; this one is not shown. a, b and c: its
  /// first 24 bytes · node: peer
  case peerNamed = 101
  /// A neighbour closes links as duplicates of links to another node that uses this node's key. node: neighbour
  case keyHeldElsewhere = 102

  // Channels and messages. Reserved: 111–113, 116–119, 121.
  /// a: epoch · node: far end
  case channelOpened = 110
  /// The channel was closed to free its slot for another peer. node: far end
  case channelClosed = 114
  /// No channel slot is free. a: channels · b: limit · node: the peer without a channel
  case channelsFull = 115
  /// a: frame type · b: bytes · node: claimed source
  case segmentRefused = 120
  /// Payloads to a peer are encrypted with new keys. a: handshake duration in milliseconds · node: peer
  case sessionOpened = 122
  /// A session handshake failed. a: reason (session) · node: peer
  case sessionFailed = 123
  /// A session with correct keys was refused. a: reason (seal) · b: 1 if the peer refused · node: peer
  case sessionRefused = 124

  // Bearers. Reserved: 140–145, 150–154, 160–166, 170–172.
  /// a: errno · b: connections · c: limit
  case acceptFailed = 146
  /// WPS push-button mode was started for joining stations. a: seconds
  case wifiButtonPressed = 155

  // Diagnostics
  /// a: client slot · b: its process id · c: its user id
  case controlAttached = 190
  /// a: client slot · b: reason
  case controlDetached = 191
  /// a: reason · b: bytes
  case controlRefused = 192
  /// a: operation byte · b: process id of the client
  case controlRequest = 193
}
