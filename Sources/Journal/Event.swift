/// The event of a record. Raw values are stored in journal files and never reused. `eventText` (Diagnostics) defines
/// the text of each event and alone formats them.
///
/// The comments define the record's integers `a`, `b`, `c` and its 16 bytes (`node` or `text`). The record's `link`
/// byte is the link slot, or 0xFF for none.
public enum Event: UInt16, Sendable {
  // The box
  /// a: boot epoch · b: process id · node: own id
  case boxStarted = 1
  /// a: the signal that requested it, or 0
  case boxStopped = 2
  /// The last message before a crash. Its first 40 bytes are in a, b, c and the 16 bytes; `textMore` continues it.
  case panic = 3
  /// a: new wall-clock offset (ns, two's complement) · b: previous offset
  case clockStepped = 4
  /// A new node key was generated. node: own id
  case identityCreated = 5
  /// a: bytes free in the pool · b: pool size in bytes
  case memoryLow = 6
  /// a: errno · text: file
  case stateWriteFailed = 7
  /// a: milliseconds that one wake-up took
  case loopSlow = 8
  /// a: errno · text: what failed to start
  case startFailed = 9
  /// A text message, “source: text”, stored like `panic`
  case report = 10
  /// The next 40 bytes of the text that the previous record began
  case textMore = 11
  /// Repeated records that were counted instead of written. a: count · b: their event · c: the period in seconds ·
  /// link, node and text: those of one of them
  case repeated = 12
  /// The journal file was removed or truncated, and was restored. a: 1 if its records were lost
  case journalRestored = 13

  // Links
  /// A stream was opened and the TLS handshake begins. a: bearer · b: 1 inbound, 0 dialled
  case linkOpening = 20
  /// The link is in use. a: bearer · b: agreed capabilities · c: maximum frame size in bytes · node: neighbour
  case linkUp = 21
  /// a: bearer · b: reason (link) · c: uptime in seconds · node: neighbour
  case linkDown = 22
  /// a: bearer · text: reason
  case handshakeFailed = 23
  /// a: bearer · b: milliseconds waited
  case handshakeTimedOut = 24
  /// a: reason (hello) · b: offered version · node: claimed id
  case helloRefused = 25
  /// The certificate does not authenticate the claimed id. node: claimed id
  case identityMismatch = 26
  /// Nothing was received within the timeout. node: neighbour
  case neighbourDead = 27
  /// A second link to the same neighbour was opened, and one of them is closed. a: bearer kept · b: bearer closed ·
  /// node: neighbour
  case linkDuplicate = 28
  /// The neighbour sent a goodbye. a: reason · b: retry-after time in milliseconds · node: neighbour
  case goodbyeReceived = 29
  /// a: reason · b: retry-after time in milliseconds · node: neighbour
  case goodbyeSent = 30
  /// A peer with a known key was refused because its epoch is older. a: offered epoch · b: known epoch · node: peer
  case epochStale = 31
  /// The neighbour restarted, and its old state is dropped. a: new epoch · b: old epoch · node: peer
  case epochNewer = 32
  /// All link slots are in use. a: links · b: limit
  case linkSlotsFull = 33
  /// This node dialled itself. a: bearer
  case selfDialled = 34
  /// a: round trip in microseconds · node: neighbour
  case roundTripMeasured = 35
  /// a: priority · b: bytes queued · c: limit in bytes
  case queueOverflow = 36
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

  // Frames
  /// a: reason (frame) · node: neighbour
  case frameRefused = 50
  /// A frame was skipped because this version does not know its type. a: type · b: bytes
  case frameTypeUnknown = 51
  /// a: type · b: bytes · node: source
  case frameForwarded = 52
  /// a: type · b: reason (drop) · node: destination
  case frameDropped = 53
  /// A sealed frame's header was not authentic or out of order. a: received sequence · b: expected sequence
  case bypassRefused = 54
  /// A sealed frame arrived outside TLS on a link that did not negotiate the bypass.
  case bypassUnexpected = 55

  // Discovery and dialling
  /// a: bearer · b: first 8 bytes of the claimed id · text: address
  case candidateFound = 70
  /// a: bearer · b: first 8 bytes of the claimed id · text: address
  case candidateLost = 71
  /// a: bearer · b: token · text: address
  case dialStarted = 72
  /// a: bearer · b: token · c: errno or 0 · text: reason
  case dialFailed = 73
  /// a: bearer · b: milliseconds until the next attempt
  case dialDeferred = 74
  /// a: bearer · b: token
  case dialTimedOut = 75
  /// a: candidates · b: limit
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
  /// a: reason (advertisement) · b: sequence · node: claimed origin
  case advertisementRefused = 95
  /// The own advertisement was flooded. a: sequence
  case advertisementSent = 96
  /// Another node uses this node's key. a: its epoch · b: own epoch
  case identityDuplicated = 97
  /// a: known nodes · b: limit
  case nodesFull = 98
  /// a: number of the quota · b: used · c: limit · node: peer
  case quotaExceeded = 99
  /// This node raised its epoch to supersede advertisements from before its restart. a: previous epoch · b: new epoch
  case epochRaised = 100
  /// A peer's display name, which readers use in the lines of other records; this one is not shown. a, b and c: its
  /// first 24 bytes · node: peer
  case peerNamed = 101
  /// A neighbour closes links as duplicates of links to another node that uses this node's key. node: neighbour
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
  /// The channel was closed to free its slot for another peer. node: far end
  case channelClosed = 114
  /// No channel slot is free. a: channels · b: limit · node: the peer without a channel
  case channelsFull = 115
  /// a: request · b: bytes · node: destination
  case messageSent = 116
  /// a: request · b: status · c: milliseconds · node: destination
  case messageDelivered = 117
  /// a: request · b: status · node: destination
  case messageFailed = 118
  /// a: kind · b: lane · c: bytes · node: source
  case messageReceived = 119
  /// a: frame type · b: bytes · node: claimed source
  case segmentRefused = 120
  /// a: lane · b: bytes · node: source
  case messageRefused = 121
  /// Payloads to a peer are encrypted with new keys. a: handshake duration in milliseconds · node: peer
  case sessionOpened = 122
  /// A session handshake failed. a: reason (session) · node: peer
  case sessionFailed = 123
  /// A session with correct keys was refused. a: reason (seal) · b: 1 if the peer refused · node: peer
  case sessionRefused = 124

  // Bearers
  /// a: bearer · b: errno or 0 · text: what is missing
  case bearerAbsent = 140
  /// a: bearer · text: what recovered
  case bearerBack = 141
  /// a: bearer · b: errno or 0 · text: failed call
  case bearerFailed = 142
  /// a: bearer · b: interface index · text: its name
  case interfaceUp = 143
  /// a: bearer · b: interface index · text: its name
  case interfaceDown = 144
  /// a: port · b: interface index or 0
  case listening = 145
  /// a: errno · b: connections · c: limit
  case acceptFailed = 146
  /// a: frequency in MHz · b: 1 group owner, 0 client · text: start of the SSID
  case wifiGroupStarted = 150
  /// a: reason code of wpa_supplicant · text: start of the SSID
  case wifiGroupRemoved = 151
  /// a: address of the station
  case wifiStationJoined = 152
  /// a: address of the station
  case wifiStationLeft = 153
  /// a: attempt · text: reason
  case wifiJoinFailed = 154
  /// WPS push-button mode was started for joining stations. a: seconds
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
  /// a: adapter index · b: recovery step
  case bluetoothRecovery = 166
  /// a: mode (1 daemon, 2 embedded)
  case dnsServiceRegistered = 170
  /// a: Avahi's error code, negated
  case dnsServiceFailed = 171
  /// Another host uses the name, so another name is tried.
  case dnsNameCollision = 172

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
