import Journal

/// Why a handshake with a peer failed, by the number in the journal (`SessionFailure`).
func sessionFailureText(_ reason: UInt8) -> StaticString {
  switch reason {
  case 1: "whoever answered has another key"
  case 2: "no P-256 certificate"
  case 3: "no answer"
  case 4: "ended by the other side"
  case 5: "its messages do not fit"
  case 6: "no memory"
  default: "unknown reason"
  }
}

/// Why a session with a peer was refused, by the number on the wire (`SealRefusal`).
func sealRefusalText(_ reason: UInt8) -> StaticString {
  switch reason {
  case 1: "one requires sealing, the other does not do it"
  case 2: "its statement differs from its advertisement"
  case 3: "its certificate was rejected"
  case 4: "the application did not decide on its certificate"
  case 5: "no common version"
  default: "unknown reason"
  }
}

/// The text of each event. `{a}`, `{b}`, `{c}` are the record's integers, `{node}` and `{text}` its 16 bytes; after a
/// colon follows the format (see `EventFormatter`).
func eventText(_ event: Event) -> StaticString {
  switch event {
  case .boxStarted: "box {node:full} started: epoch {a}, process {b}"
  case .boxStopped: "box stopped{a:signal}"
  case .panic: "panic: {text:long}"
  case .report: "{text:long}"
  case .textMore: "… {text:long}"
  case .repeated: "{a} more in {c} s: {b:event}"
  case .journalRestored: "the journal was removed or cut{a:lost}; it is kept again"
  case .clockStepped: "the wall clock was set, by {a:step} s"
  case .identityCreated: "new identity {node:full}"
  case .memoryLow: "memory is low: {a} of {b} bytes free"
  case .stateWriteFailed: "cannot write {text}{a:errno}"
  case .loopSlow: "one wake-up took {a} ms"
  case .startFailed: "cannot start {text}{a:errno}"

  case .linkOpening: "opening over {a:bearer}, {b:direction}"
  case .linkUp: "up over {a:bearer} with {node}: capabilities {b:hex}, frames up to {c} bytes"
  case .linkDown: "down: {a:bearer} with {node}, {b:close}, after {c} s"
  case .handshakeFailed: "TLS handshake over {a:bearer} failed: {text}"
  case .handshakeTimedOut: "TLS handshake over {a:bearer} not done after {b} ms"
  case .helloRefused: "hello refused: {a:close}, version {b}, claims {node}"
  case .identityMismatch: "claims to be {node}, which its certificate does not prove"
  case .neighbourDead: "{node} is dead: nothing was heard for too long"
  case .linkDuplicate: "second link to {node}: {a:bearer} kept, {b:bearer} closed"
  case .goodbyeReceived: "{node} said goodbye: {a:close}, come back after {b} ms"
  case .goodbyeSent: "said goodbye to {node}: {a:close}, come back after {b} ms"
  case .epochStale: "{node} refused: epoch {a} is older than {b}"
  case .epochNewer: "{node} restarted: epoch {a} after {b}"
  case .linkSlotsFull: "all links are taken: {a} of {b}"
  case .selfDialled: "dialled this node itself over {a:bearer}"
  case .roundTripMeasured: "round trip to {node}: {a} µs"
  case .queueOverflow: "queue of priority {a} is full: {b} of {c} bytes"
  case .linkStalled: "{node} takes nothing: {a} bytes wait"
  case .linkResumed: "{node} takes frames again: {a} bytes wait"
  case .linkQuarantined: "{a:bearer} with {node} keeps breaking: quarantined for {b} s, used only without another route"
  case .linkCostStated: "{a:bearer} with {node} costs {b}, it was {c}"
  case .linkParked: "{a:bearer} with {node} is parked, after {b} ms"
  case .linkTakesNothing:
    "{node} has taken nothing for {a} s: its reader stands still, or its receive buffer is too short; {b} bytes wait"
  case .linkCarries: "{a:bearer} is now used to {node}, instead of {b:bearer}"

  case .frameRefused: "frame of {node} refused: {a:frame}"
  case .frameTypeUnknown: "frame of unknown type {a} skipped, {b} bytes"
  case .frameForwarded: "forwarded {a:type} of {node}, {b} bytes"
  case .frameDropped: "dropped {a:type} for {node}: {b:frame}"
  case .bypassRefused: "sealed frame refused: sequence {a}, expected {b}"
  case .bypassUnexpected: "sealed frame on a link that did not agree to them"

  case .candidateFound: "candidate found over {a:bearer}, claims {b:hint}{text:lead}"
  case .candidateLost: "candidate lost over {a:bearer}, claimed {b:hint}{text:lead}"
  case .dialStarted: "dial {b} over {a:bearer}{text:lead}"
  case .dialFailed: "dial {b} over {a:bearer} failed: {text}{c:errno}"
  case .dialDeferred: "next dial over {a:bearer} in {b} ms"
  case .dialTimedOut: "dial {b} over {a:bearer} timed out"
  case .candidatesFull: "no room for more candidates: {a} of {b}"

  case .routeChanged: "{node} is {a} hops away over link {c}, cost {b}"
  case .routeLost: "no route to {node}"
  case .peerAppeared: "peer {node} appeared: {a} hops over {b:bearer}"
  case .peerVanished: "peer {node} vanished"
  case .advertisementAccepted: "advertisement {a} of {node} accepted: epoch {b}"
  case .advertisementRefused: "advertisement {b} of {node} refused: {a:frame}"
  case .advertisementSent: "advertisement {a} sent"
  case .identityDuplicated: "another node uses this node's key: epoch {a}, ours is {b}; was this machine's disk copied?"
  case .nodesFull: "no room for more nodes: {a} of {b}"
  case .quotaExceeded: "{node} exceeds quota {a}: {b} of {c}"
  case .epochRaised: "others know a later epoch than {a}: it is {b} now; was the state lost, or the disk copied?"
  case .peerNamed: "{node} has a name"
  case .keyHeldElsewhere:
    "{node} says that it is linked with another node that uses this node's key; was the disk copied?"

  case .channelOpened: "channel with {node} opened, epoch {a}"
  case .channelReset: "channel with {node} reset: reason {a}"
  case .channelRetransmitted: "segment {a} to {node} sent again, attempt {b}"
  case .channelTimedOut: "no acknowledgement from {node} for {a} ms, {b} bytes in flight"
  case .channelClosed: "channel with {node} closed: reason {a}"
  case .channelsFull: "no room for more channels: {a} of {b}"
  case .messageSent: "message {a} to {node}: {b} bytes"
  case .messageDelivered: "message {a} to {node} delivered in {c} ms, status {b}"
  case .messageFailed: "message {a} to {node} failed: status {b}"
  case .messageReceived: "message from {node}: kind {a}, lane {b}, {c} bytes"
  case .segmentRefused: "{a:type} of {node} refused, {b} bytes"
  case .sessionOpened: "session with {node} established, {a} ms after the first handshake datagram"
  case .sessionFailed: "session with {node} failed: {a:session}; retried while data is waiting"
  case .sessionRefused: "session with {node} refused by {b:end}: {a:seal}"
  case .messageRefused: "message of {node} refused: lane {a}, {b} bytes"

  case .bearerAbsent: "{a:bearer} is absent: {text}{b:errno}; watching for it"
  case .bearerBack: "{a:bearer} is back: {text}"
  case .bearerFailed: "{a:bearer} failed: {text}{b:errno}"
  case .interfaceUp: "interface {text} ({b}) is up: {a:bearer}"
  case .interfaceDown: "interface {text} ({b}) is down: {a:bearer}"
  case .listening: "listening on port {a}, interface {b}"
  case .acceptFailed: "control socket: no client can connect, {b} of {c} are there{a:errno}"
  case .wifiGroupStarted: "Wi-Fi Direct group {text} started at {a} MHz, {b:role}"
  case .wifiGroupRemoved: "Wi-Fi Direct group {text} removed: reason {a}"
  case .wifiStationJoined: "station {a:address} joined the group"
  case .wifiStationLeft: "station {a:address} left the group"
  case .wifiJoinFailed: "cannot join a Wi-Fi Direct group: {text}, attempt {a}"
  case .wifiButtonPressed: "WPS open for {a} s"
  case .bluetoothAdvertising: "hci{a} advertises, PSM {b}"
  case .bluetoothAdvertisingFailed: "hci{a} cannot advertise: status {b}"
  case .bluetoothScanning: "hci{a} scans"
  case .bluetoothScanFailed: "hci{a} cannot scan: status {b}"
  case .bluetoothAdapterUp: "hci{a} is up: {b:address}"
  case .bluetoothAdapterDown: "hci{a} is down"
  case .bluetoothRecovery: "hci{a}: recovery step {b}"
  case .dnsServiceRegistered: "DNS-SD service registered, {a:responder}"
  case .dnsServiceFailed: "DNS-SD failed: avahi -{a}"
  case .dnsNameCollision: "DNS-SD name is taken; another one is tried"

  case .controlAttached: "control client {a} attached: process {b}, user {c}"
  case .controlDetached: "control client {a} left: reason {b}"
  case .controlRefused: "control client refused: reason {a}, {b} bytes"
  case .controlRequest: "control request {a:character} of process {b}"
  }
}
