/// The event that a record describes. Raw values are stored in journal files, and are never used for another event. The
/// function `eventText` in `Log` defines the text of each event.
///
/// The comments define the record's integers `a`, `b` and `c`, and its 16 bytes (`node` or `text`). The record's `link`
/// byte is the number of the link slot, or 0xFF without a link. Reserved raw values belonged to events of earlier
/// versions. No new event uses the reserved values, because old journals may still contain them.
public enum Event: UInt16, Sendable {
  // The box. Reserved: 5–9.
  /// The daemon has started. a: boot epoch · b: process id · node: own id
  case boxStarted = 1
  /// The daemon begins to stop. a: the signal that requested the stop, or 0
  case boxStopped = 2
  /// The last message before a crash. The first 40 bytes of this message are in a, b, c and the 16 bytes; the rest
  /// follows in `textMore`
  case panic = 3
  /// The wall clock was set. a: new offset from the monotonic clock in ns, two's complement · b: previous offset
  case clockStepped = 4
  /// A text, “source: text”, stored in the same form as `panic`
  case report = 10
  /// The next 40 bytes of the text in the previous record
  case textMore = 11
  /// The number of repeated records that were not written. a: count · b: event of these records · c: the period in
  /// seconds · link, node and text: as in one of these records
  case repeated = 12
  /// The journal file was removed or truncated, and was created again. a: 1 if its records were lost
  case journalRestored = 13

  // Links. Reserved: 23–26, 29–32, 35, 36.
  /// A stream was opened, and its TLS handshake begins. a: bearer · b: 1 inbound, 0 dialled
  case linkOpening = 20
  /// A link can carry frames. a: bearer · b: agreed capabilities · c: maximum frame size in bytes · node: neighbour
  case linkUp = 21
  /// A link has ended. a: bearer · b: reason (`CloseReason`) · c: uptime in seconds · node: neighbour
  case linkDown = 22
  /// Nothing was received from a neighbour within the timeout. node: neighbour
  case neighbourDead = 27
  /// This node closes one of two links to the same neighbour. a: bearer of the remaining link · b: bearer of the closed
  /// link · node: neighbour
  case linkDuplicate = 28
  /// A new link finds all slots in use. a: used slots · b: limit · node: the neighbour without a slot, if known
  case linkSlotsFull = 33
  /// This node dialled itself. a: bearer
  case selfDialled = 34
  /// The neighbour accepts no frames, but its radio still responds. a: bytes queued for the neighbour · node: neighbour
  case linkStalled = 37
  /// The neighbour accepts frames again. a: bytes still queued for the neighbour · node: neighbour
  case linkResumed = 38
  /// The link breaks often. For a time the link is used only if no other route exists. a: bearer · b: that time in
  /// seconds · node: neighbour
  case linkQuarantined = 39
  /// This node advertises a new cost of the link, as measured. a: bearer · b: new cost · c: old cost · node: neighbour
  case linkCostStated = 40
  /// Traffic to a neighbour with several links moved to another of its links. a: bearer of that link · b: bearer of the
  /// previous link · node: neighbour
  case linkCarries = 41
  /// The link was parked: its connection is closed, and both ends keep the state of the link. a: bearer · b: uptime in
  /// milliseconds · node: neighbour
  case linkParked = 42
  /// A link is closed, because the neighbour accepts no frames. a: for how many seconds · b: bytes queued for the
  /// neighbour · node: neighbour
  case linkTakesNothing = 43

  // Frames. Reserved: 51–55.
  /// A frame was refused. a: reason (`FrameError`) · node: neighbour
  case frameRefused = 50

  // Discovery and dialling. Reserved: 74, 75.
  /// Discovery found an address of a node. a: bearer · b: first 8 bytes of the claimed id
  case candidateFound = 70
  /// Discovery no longer finds an address of a node. a: bearer · b: first 8 bytes of the claimed id
  case candidateLost = 71
  /// A dial begins. a: bearer · b: token of the dial
  case dialStarted = 72
  /// A dial has failed. a: bearer · b: token of the dial · text: reason
  case dialFailed = 73
  /// The candidate table is full. a: candidates · b: limit
  case candidatesFull = 76

  // Mesh. Reserved: 90, 91, 95, 99.
  /// A node has become reachable. a: hops · b: bearer of the first hop · node: peer
  case peerAppeared = 92
  /// A node is no longer reachable. node: peer
  case peerVanished = 93
  /// A node's advertisement was accepted. a: sequence · b: epoch · node: origin
  case advertisementAccepted = 94
  /// This node has flooded its own advertisement. a: sequence
  case advertisementSent = 96
  /// Another node uses this node's key. a: epoch of the other node · b: own epoch
  case identityDuplicated = 97
  /// The table of nodes is full. a: known nodes · b: limit
  case nodesFull = 98
  /// This node raised its epoch, because other nodes know advertisements with a later epoch of its key. a: previous
  /// epoch · b: new epoch
  case epochRaised = 100
  /// A peer's display name. Readers show the name in the lines of other records, and do not show this record. a, b and
  /// c: first 24 bytes of the name · node: peer
  case peerNamed = 101
  /// A neighbour reports a link to another node that has this node's key. node: neighbour
  case keyHeldElsewhere = 102

  // Channels and messages. Reserved: 111–113, 116–119, 121.
  /// A channel to another node was opened. a: epoch · node: the other node
  case channelOpened = 110
  /// A channel was closed to free its slot for another peer. node: the node at the other end of the channel
  case channelClosed = 114
  /// No channel slot is free. a: channels · b: limit · node: the peer without a channel
  case channelsFull = 115
  /// A payload of a channel was refused. a: frame type · b: bytes of the payload · node: claimed source
  case segmentRefused = 120
  /// The encrypted session with a peer has new keys. a: handshake duration in milliseconds · node: peer
  case sessionOpened = 122
  /// A handshake of the encrypted session with a peer has failed. a: reason (`sessionFailureText`) · node: peer
  case sessionFailed = 123
  /// The encrypted session with a peer was refused, although the peer proved its key. a: reason (`sealRefusalText`) ·
  /// b: 1 if the peer refused, 0 if this node did · node: peer
  case sessionRefused = 124

  // Bearers. Reserved: 140–145, 150–154, 160–166, 170–172.
  /// The control socket cannot accept a connection. a: errno · b: connections · c: limit
  case acceptFailed = 146
  /// WPS push-button mode was started, so that stations can join. a: its duration in seconds
  case wifiButtonPressed = 155

  // The control socket
  /// A client of the control socket has connected. a: client slot · b: process id of the client · c: user id of the
  /// client
  case controlAttached = 190
  /// A client of the control socket was disconnected. a: client slot · b: reason
  case controlDetached = 191
  /// A client or request of the control socket was refused. a: reason · b: bytes of the request
  case controlRefused = 192
  /// A client of the control socket sent a request. a: operation byte · b: process id of the client
  case controlRequest = 193
}
