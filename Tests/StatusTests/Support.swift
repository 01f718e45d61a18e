import Primitives
import Status

let aliceID = NodeID(high: 0xA11C_E000_0000_0001, low: 1)
let bobID = NodeID(high: 0xB0B0_0000_0000_0002, low: 2)

func peer(_ id: NodeID, _ name: String, info: [String] = [], hops: UInt8 = 1) -> PeerStatus {
  PeerStatus(
    id: id, name: name, serviceType: "causeway", info: info, hops: hops, bearer: .wifiDirect, via: id)
}

/// The status of a box with one bearer and one link.
func status(peers: [PeerStatus] = []) -> StatusSnapshot {
  var snapshot = StatusSnapshot(
    box: BoxStatus(
      name: "box", id: aliceID, epoch: 7, version: "1", serviceType: "causeway", isRelay: true, uptimeSeconds: 75,
      residentBytes: 4_200_000))
  snapshot.box.refusals = [("ttl-zero", 2)]
  snapshot.bearers = [BearerStatus(name: "ethernet", state: "up", detail: "eth0", problem: "")]
  snapshot.links = [
    LinkStatus(
      slot: 3, peer: bobID, name: "bob", bearer: .bluetoothLE, state: "up", remote: "00:11:22:33:44:55",
      isInbound: true, sinceSeconds: 5, roundTripMicroseconds: 1500, bytesReceived: 1, bytesSent: 2000, bytesQueued: 0)
  ]
  snapshot.peers = peers
  return snapshot
}
