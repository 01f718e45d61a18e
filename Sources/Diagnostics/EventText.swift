import Journal

/// The reason why a handshake with a peer failed, by its number in the journal (`SessionFailure`).
func sessionFailureText(_ reason: UInt8) -> StaticString {
  switch reason {
  case 1: "whoever answered has another key"
  case 2: "no P-256 certificate"
  case 3: "no answer"
  case 4: "ended by the other side"
  case 5: "its messages do not fit"
  case 6: "no memory"
  case 7: "it has no place for another session now"
  case 8: "its place was given to another peer"
  default: "unknown reason"
  }
}

/// The reason why a session with a peer was refused, by its number on the wire (`SealRefusal`).
func sealRefusalText(_ reason: UInt8) -> StaticString {
  switch reason {
  case 1: "one requires sealing, the other does not do it"
  case 2: "its statement differs from its advertisement"
  case 3: "its certificate was rejected"
  case 4: "the application did not decide on its certificate"
  case 5: "no common version"
  case 6: "it gave the place to another peer"
  default: "unknown reason"
  }
}

/// The template of each event. `{a}`, `{b}` and `{c}` are the record's integers; `{node}` and `{text}` are its 16
/// bytes. The format follows after a colon (see `EventFormatter`).
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

  case .linkOpening: "opening over {a:bearer}, {b:direction}"
  case .linkUp: "up over {a:bearer} with {node}: capabilities {b:hex}, frames up to {c} bytes"
  case .linkDown: "down: {a:bearer} with {node}, {b:close}, after {c} s"
  case .neighbourDead: "{node} is dead: nothing was heard for too long"
  case .linkDuplicate: "second link to {node}: {a:bearer} kept, {b:bearer} closed"
  case .linkSlotsFull: "all links are taken: {a} of {b}"
  case .selfDialled: "dialled this node itself over {a:bearer}"
  case .linkStalled: "{node} takes nothing: {a} bytes wait"
  case .linkResumed: "{node} takes frames again: {a} bytes wait"
  case .linkQuarantined: "{a:bearer} with {node} keeps breaking: quarantined for {b} s, used only without another route"
  case .linkCostStated: "{a:bearer} with {node} costs {b}, it was {c}"
  case .linkParked: "{a:bearer} with {node} is parked, after {b} ms"
  case .linkTakesNothing:
    "{node} has taken nothing for {a} s: its reader stands still, or its receive buffer is too short; {b} bytes wait"
  case .linkCarries: "{a:bearer} is now used to {node}, instead of {b:bearer}"

  case .frameRefused: "frame of {node} refused: {a:frame}"

  case .candidateFound: "candidate found over {a:bearer}, claims {b:hint}"
  case .candidateLost: "candidate lost over {a:bearer}, claimed {b:hint}"
  case .dialStarted: "dial {b} over {a:bearer}"
  case .dialFailed: "dial {b} over {a:bearer} failed: {text}"
  case .candidatesFull: "no room for more candidates: {a} of {b}"

  case .peerAppeared: "peer {node} appeared: {a} hops over {b:bearer}"
  case .peerVanished: "peer {node} vanished"
  case .advertisementAccepted: "advertisement {a} of {node} accepted: epoch {b}"
  case .advertisementSent: "advertisement {a} sent"
  case .identityDuplicated: "another node uses this node's key: epoch {a}, ours is {b}; was this machine's disk copied?"
  case .nodesFull: "no room for more nodes: {a} of {b}"
  case .epochRaised: "others know a later epoch than {a}: it is {b} now; was the state lost, or the disk copied?"
  case .peerNamed: "{node} has a name"
  case .keyHeldElsewhere:
    "{node} says that it is linked with another node that uses this node's key; was the disk copied?"

  case .channelOpened: "channel with {node} opened, epoch {a}"
  case .channelClosed: "channel with {node} closed: its place was given to another peer"
  case .channelsFull: "no place for a channel with {node}: {a} of {b} are taken"
  case .segmentRefused: "{a:type} of {node} refused, {b} bytes"
  case .sessionOpened: "session with {node} established, {a} ms after the first handshake datagram"
  case .sessionFailed: "session with {node} failed: {a:session}; retried while data is waiting"
  case .sessionRefused: "session with {node} refused by {b:end}: {a:seal}"

  case .acceptFailed: "control socket: no client can connect, {b} of {c} are there{a:errno}"
  case .wifiButtonPressed: "WPS open for {a} s"

  case .controlAttached: "control client {a} attached: process {b}, user {c}"
  case .controlDetached: "control client {a} left: reason {b}"
  case .controlRefused: "control client refused: reason {a}, {b} bytes"
  case .controlRequest: "control request {a:character} of process {b}"
  }
}
