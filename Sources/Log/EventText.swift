import Journal

/// The reason why a handshake with a peer failed, by its number in the journal (`SessionFailure`).
func sessionFailureText(_ reason: UInt8) -> StaticString {
  switch reason {
  case 1: "the node that answered has another key"
  case 2: "no P-256 certificate"
  case 3: "no answer"
  case 4: "ended by the peer"
  case 5: "invalid handshake messages"
  case 6: "no memory"
  case 7: "the peer has no free session"
  case 8: "evicted for another peer"
  default: "unknown reason"
  }
}

/// The reason why a session with a peer was refused, by its number on the wire (`SealRefusal`).
func sealRefusalText(_ reason: UInt8) -> StaticString {
  switch reason {
  case 1: "one node requires encryption, the other has none"
  case 2: "its sealed hello differs from its advertisement"
  case 3: "its certificate was rejected"
  case 4: "the application did not decide on its certificate"
  case 5: "no common version"
  case 6: "evicted for another peer"
  default: "unknown reason"
  }
}

/// The template of an event's message. `{a}`, `{b}` and `{c}` stand for the record's integers. `{node}` and `{text}`
/// stand for the record's 16-byte node id, shown as an id or as text. A colon separates the field from its format
/// (`EventFormatter`).
func eventText(_ event: Event) -> StaticString {
  switch event {
  case .boxStarted: "box {node:full} started: epoch {a}, process {b}"
  case .boxStopped: "box stopped{a:signal}"
  case .panic: "panic: {text:long}"
  case .report: "{text:long}"
  case .textMore: "… {text:long}"
  case .repeated: "{a} more in {c} s: {b:event}"
  case .journalRestored: "the journal file was removed or truncated{a:lost}; it is restored"
  case .clockStepped: "the wall clock was stepped by {a:step} s"

  case .linkOpening: "opening over {a:bearer}, {b:direction}"
  case .linkUp: "up over {a:bearer} with {node}: capabilities {b:hex}, frames up to {c} bytes"
  case .linkDown: "down: {a:bearer} with {node}, {b:close}, after {c} s"
  case .neighbourDead: "{node} timed out: nothing was received"
  case .linkDuplicate: "second link to {node}: {a:bearer} kept, {b:bearer} closed"
  case .linkSlotsFull: "all links are in use: {a} of {b}"
  case .selfDialled: "this node dialled itself over {a:bearer}"
  case .linkStalled: "{node} accepts no frames: {a} bytes queued"
  case .linkResumed: "{node} accepts frames again: {a} bytes queued"
  case .linkQuarantined: "{a:bearer} with {node} keeps breaking: quarantined for {b} s, used only without other routes"
  case .linkCostStated: "{a:bearer} with {node}: cost {b}, previously {c}"
  case .linkParked: "{a:bearer} with {node} parked after {b} ms"
  case .linkTakesNothing:
    "{node} accepted no frames for {a} s: it does not read, or its receive buffer is too small; {b} bytes queued"
  case .linkCarries: "traffic to {node} now uses {a:bearer} instead of {b:bearer}"

  case .frameRefused: "frame from {node} refused: {a:frame}"

  case .candidateFound: "candidate found over {a:bearer}, claims {b:hint}"
  case .candidateLost: "candidate lost over {a:bearer}, claimed {b:hint}"
  case .dialStarted: "dial {b} over {a:bearer}"
  case .dialFailed: "dial {b} over {a:bearer} failed: {text}"
  case .candidatesFull: "the candidate table is full: {a} of {b}"

  case .peerAppeared: "peer {node} appeared: {a} hops over {b:bearer}"
  case .peerVanished: "peer {node} vanished"
  case .advertisementAccepted: "advertisement {a} of {node} accepted: epoch {b}"
  case .advertisementSent: "advertisement {a} sent"
  case .identityDuplicated: "another node uses this node's key: its epoch is {a}, here {b}; was the disk copied?"
  case .nodesFull: "the node table is full: {a} of {b}"
  case .epochRaised: "peers know a later epoch than {a}, now {b} is used; was the state lost, or the disk copied?"
  case .peerNamed: "{node} has a name"
  case .keyHeldElsewhere:
    "{node} reports a link to another node that uses this node's key; was the disk copied?"

  case .channelOpened: "channel with {node} opened, epoch {a}"
  case .channelClosed: "channel with {node} closed: evicted for another peer"
  case .channelsFull: "no free channel for {node}: {a} of {b} in use"
  case .segmentRefused: "{a:type} from {node} refused, {b} bytes"
  case .sessionOpened: "session with {node} established, {a} ms after the first handshake datagram"
  case .sessionFailed: "session with {node} failed: {a:session}; retried while data is waiting"
  case .sessionRefused: "session with {node} refused by {b:end}: {a:seal}"

  case .acceptFailed: "control socket: cannot accept a client, {b} of {c} connected{a:errno}"
  case .wifiButtonPressed: "WPS push button active for {a} s"

  case .controlAttached: "control client {a} attached: process {b}, user {c}"
  case .controlDetached: "control client {a} detached: reason {b}"
  case .controlRefused: "control client refused: reason {a}, {b} bytes"
  case .controlRequest: "control request {a:character} of process {b}"
  }
}
