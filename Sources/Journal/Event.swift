/// The event of a record. Raw values are stored in journal files and never reused. `eventText` (Diagnostics) has each
/// event's text; only it formats events.
///
/// Each comment says what the record's integers `a`, `b`, `c` and its 16 bytes (`node` or `text`) hold. The record's
/// `link` byte is the link slot, 0xFF for none.
public enum Event: UInt16, Sendable {
  // The box
  /// a: boot epoch · b: process id · node: own id
  case boxStarted = 1
  /// a: the signal that requested it, 0 for none
  case boxStopped = 2
  /// The last message before a crash. Up to 40 bytes of text are in a, b, c and the 16 bytes; `textMore` continues
  case panic = 3
  /// a: new wall-clock offset (ns, two's complement) · b: the one before
  case clockStepped = 4
  /// A new node key was made. node: own id
  case identityCreated = 5
  /// a: bytes free in the pool · b: pool size in bytes
  case memoryLow = 6
  /// a: errno · text: file
  case stateWriteFailed = 7
  /// a: milliseconds one wake-up took
  case loopSlow = 8
  /// a: errno · text: what failed to start
  case startFailed = 9
  /// A message in words: “source: text”, stored like `panic`
  case report = 10
  /// The next 40 bytes of the text in the previous record
  case textMore = 11
  /// Records that were counted instead of written. a: how many · b: their event · c: within how many seconds · link,
  /// node and text: those of one of them
  case repeated = 12
  /// The journal's file was removed or truncated, and was restored. a: 1 when its records were lost
  case journalRestored = 13

  // Links
  /// A stream was opened and the TLS handshake begins. a: bearer · b: 1 inbound, 0 dialled
  case linkOpening = 20
  /// The link is in use. a: bearer · b: capabilities agreed · c: frame bytes at most · node: neighbour
  case linkUp = 21
  /// a: bearer · b: reason (link) · c: seconds it was up · node: neighbour
  case linkDown = 22
  /// a: bearer · text: reason
  case handshakeFailed = 23
  /// a: bearer · b: milliseconds waited
  case handshakeTimedOut = 24
  /// a: reason (hello) · b: version offered · node: the id claimed
  case helloRefused = 25
  /// The claimed id is not the certificate's. node: the id claimed
  case identityMismatch = 26
  /// Nothing was received for too long. node: neighbour
  case neighbourDead = 27
  /// A second link to one neighbour: one of them is closed. a: bearer kept · b: bearer closed · node: neighbour
  case linkDuplicate = 28
  /// The neighbour said goodbye. a: reason · b: retry after, milliseconds · node: neighbour
  case goodbyeReceived = 29
  /// a: reason · b: retry after, milliseconds · node: neighbour
  case goodbyeSent = 30
  /// The same key with an older epoch: refused. a: epoch offered · b: epoch known · node: peer
  case epochStale = 31
  /// The neighbour restarted: its old state is dropped. a: new epoch · b: old epoch · node: peer
  case epochNewer = 32
  /// All link slots are taken. a: links · b: most
  case linkSlotsFull = 33
  /// This node dialled itself. a: bearer
  case selfDialled = 34
  /// a: round trip in microseconds · node: neighbour
  case roundTripMeasured = 35
  /// a: priority · b: bytes queued · c: bytes at most
  case queueOverflow = 36
  /// The neighbour takes nothing, but its radio answers. a: bytes queued · node: neighbour
  case linkStalled = 37
  /// The neighbour takes frames again. a: bytes still queued · node: neighbour
  case linkResumed = 38
  /// The link breaks often: it is used only where there is no other way. a: bearer · b: seconds · node: neighbour
  case linkQuarantined = 39
  /// The advertised cost follows the measurement. a: bearer · b: new cost · c: old cost · node: neighbour
  case linkCostStated = 40
  /// Another of several links to a neighbour is in use now. a: its bearer · b: previous bearer · node: neighbour
  case linkCarries = 41
  /// The link rests; both ends keep it. a: bearer · b: milliseconds it was up · node: neighbour
  case linkParked = 42
  /// A link ends because the neighbour takes nothing. a: for how many seconds · b: bytes queued · node: neighbour
  case linkTakesNothing = 43

  // Frames
  /// a: reason (frame) · node: neighbour
  case frameRefused = 50
  /// Skipped: a type that this version does not know. a: type · b: bytes
  case frameTypeUnknown = 51
  /// a: type · b: bytes · node: source
  case frameForwarded = 52
  /// a: type · b: reason (drop) · node: destination
  case frameDropped = 53
  /// A sealed frame's header was not authentic, or came out of order. a: sequence seen · b: sequence expected
  case bypassRefused = 54
  /// A sealed frame arrived outside TLS on a link that did not agree to it.
  case bypassUnexpected = 55

  // Discovery and dialling
  /// a: bearer · b: first 8 bytes of the id claimed · text: address
  case candidateFound = 70
  /// a: bearer · b: first 8 bytes of the id claimed · text: address
  case candidateLost = 71
  /// a: bearer · b: token · text: address
  case dialStarted = 72
  /// a: bearer · b: token · c: errno or 0 · text: reason
  case dialFailed = 73
  /// a: bearer · b: milliseconds until the next attempt
  case dialDeferred = 74
  /// a: bearer · b: token
  case dialTimedOut = 75
  /// a: candidates · b: most
  case candidatesFull = 76

  // Mesh
  /// a: hops · b: cost · c: link of the next hop · node: destination
  case routeChanged = 90
  /// node: destination
  case routeLost = 91
  /// a: hops · b: bearer of the first hop · node: peer
  case peerAppeared = 92
  /// node: peer
  case peerVanished = 93
  /// a: sequence · b: epoch · node: origin
  case advertisementAccepted = 94
  /// a: reason (advertisement) · b: sequence · node: origin claimed
  case advertisementRefused = 95
  /// Own advertisement flooded. a: sequence
  case advertisementSent = 96
  /// Another node uses this node's key. a: epoch seen · b: own epoch
  case identityDuplicated = 97
  /// a: nodes known · b: most
  case nodesFull = 98
  /// a: number of the quota · b: used · c: allowed · node: peer
  case quotaExceeded = 99
  /// This node takes a later epoch, to supersede advertisements of a former start. a: epoch before · b: new epoch
  case epochRaised = 100
  /// The first 24 bytes of its display name are in a, b and c · node: peer. It is not shown: other records' lines have the name.
  case peerNamed = 101
  /// A neighbour closes links as if it were linked with another node that uses this node's key. node: neighbour
  case keyHeldElsewhere = 102

  // Channels and messages
  /// a: epoch · node: far end
  case channelOpened = 110
  /// a: reason (channel) · node: far end
  case channelReset = 111
  /// a: sequence · b: attempt · node: far end
  case channelRetransmitted = 112
  /// a: milliseconds without an acknowledgement · b: bytes in flight · node: far end
  case channelTimedOut = 113
  /// Its place was given to another peer. node: far end
  case channelClosed = 114
  /// There is no place for another channel. a: channels · b: most · node: the peer without one
  case channelsFull = 115
  /// a: request · b: bytes · node: to
  case messageSent = 116
  /// a: request · b: status · c: milliseconds · node: to
  case messageDelivered = 117
  /// a: request · b: status · node: to
  case messageFailed = 118
  /// a: kind · b: lane · c: bytes · node: from
  case messageReceived = 119
  /// a: frame type · b: bytes · node: source claimed
  case segmentRefused = 120
  /// a: lane · b: bytes · node: from
  case messageRefused = 121
  /// Payloads to a peer are sealed under new keys. a: duration of the handshake in milliseconds · node: peer
  case sessionOpened = 122
  /// A handshake failed. a: reason (session) · node: peer
  case sessionFailed = 123
  /// The session is refused although the keys are right. a: reason (seal) · b: 1 when the peer refused · node: peer
  case sessionRefused = 124

  // Bearers
  /// a: bearer · b: errno or 0 · text: what is missing
  case bearerAbsent = 140
  /// a: bearer · text: what works again
  case bearerBack = 141
  /// a: bearer · b: errno or 0 · text: which call
  case bearerFailed = 142
  /// a: bearer · b: interface index · text: its name
  case interfaceUp = 143
  /// a: bearer · b: interface index · text: its name
  case interfaceDown = 144
  /// a: port · b: interface index or 0
  case listening = 145
  /// a: errno · b: connections · c: most
  case acceptFailed = 146
  /// a: frequency in MHz · b: 1 group owner, 0 client · text: start of the SSID
  case wifiGroupStarted = 150
  /// a: reason code of wpa_supplicant · text: start of the SSID
  case wifiGroupRemoved = 151
  /// a: station's address
  case wifiStationJoined = 152
  /// a: station's address
  case wifiStationLeft = 153
  /// a: attempt · text: reason
  case wifiJoinFailed = 154
  /// WPS was opened for joiners. a: seconds
  case wifiButtonPressed = 155
  /// a: adapter index · b: PSM
  case bluetoothAdvertising = 160
  /// a: adapter index · b: status
  case bluetoothAdvertisingFailed = 161
  /// a: adapter index
  case bluetoothScanning = 162
  /// a: adapter index · b: status
  case bluetoothScanFailed = 163
  /// a: adapter index · b: its address
  case bluetoothAdapterUp = 164
  /// a: adapter index
  case bluetoothAdapterDown = 165
  /// a: adapter index · b: step of the ladder
  case bluetoothRecovery = 166
  /// a: mode (1 daemon, 2 embedded)
  case dnsServiceRegistered = 170
  /// a: avahi's error code, made positive
  case dnsServiceFailed = 171
  /// The name is used by another host; another one is tried.
  case dnsNameCollision = 172

  // Diagnostics
  /// a: client slot · b: its process id · c: its user id
  case controlAttached = 190
  /// a: client slot · b: reason
  case controlDetached = 191
  /// a: reason · b: bytes
  case controlRefused = 192
  /// a: operation's byte · b: process id of the client
  case controlRequest = 193
}
