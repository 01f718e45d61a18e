import Bearer
import CSystem
import Primitives
import Reactor

/// The streams of the bearer: those that the bearer dials, one dial at a time, and those that peers open.
extension BluetoothBearer {
  /// Queues a dial, which ends with `bearerOpened` or `bearerDialFailed` for this token. Once the dial begins,
  /// connecting takes at most `settings.dialTimeout`. The peer then has to answer twice. Over LE, each answer takes at
  /// most `L2CAPDial.answerTime`; over classic, at most `settings.dialTimeout`. A dial to a candidate of another bearer
  /// fails at once.
  public func dial(_ candidate: Candidate, token: UInt32) {
    guard let peer = WireAddress(candidate.address) else {
      delegate?.bearerDialFailed(token: token, reason: "not a Bluetooth address")
      return
    }
    guard adapter.working != nil else {
      delegate?.bearerDialFailed(token: token, reason: "no Bluetooth controller is up")
      return
    }
    guard dials.count < Self.dialsQueuedMax else {
      delegate?.bearerDialFailed(token: token, reason: "\(Self.dialsQueuedMax) dials are already queued")
      return
    }
    dials.append((peer, token))
    dialsChanged()
    advance()
  }

  /// Ends the connection to a peer whose stream is closed. Without this call, the kernel would keep the connection, and
  /// with it a link slot, for 2 to 4 s more.
  public func hangUp(_ endpoint: BluetoothEndpoint) {
    let device = WireAddress(endpoint)
    guard let working = adapter.working, linked.contains(device), dial?.peer != device else { return }
    leaving.append(endpoint)
    adapter.post(.disconnect(working.index, device))
  }

  /// Opens a new attribute channel to an LE peer whose stream was lost. If the connection to the peer still exists, the
  /// peer's process has died. The peer's next process reaches this node over that connection, and requests the PSM
  /// there. The new attribute channel answers the request. Without the new channel, the kernels end the connection
  /// after 2 to 4 s. `wasDialled`: whether this node had dialled the peer.
  public func answerAgain(_ endpoint: BluetoothEndpoint, wasDialled: Bool) {
    let device = WireAddress(endpoint)
    guard let working = adapter.working, linked.contains(device), dial?.peer != device,
      attributes.channels.existing(endpoint) == nil,
      let descriptor = try? L2CAPSocket.connectAttributes(working.address, to: endpoint)
    else { return }
    // The channel is connected at once if the link exists. If the link is gone, the kernel would make a new link, so
    // the pending channel is closed.
    guard (try? L2CAPSocket.prepare(descriptor)) != nil else {
      _ = close(descriptor)
      return
    }
    attributes.adopt(descriptor, endpoint, firstTime: .seconds(4))?.isOfOurDial = wasDialled
  }

  /// Whether there is a connection to the peer.
  func isLinked(_ peer: WireAddress) -> Bool { linked.contains(peer) }

  var isDiallingClassic: Bool { dial?.peer.isClassic ?? false }

  var hasClassicSlot: Bool { linked.count { $0.isClassic } < ClassicRadio.linksMax }

  /// Hands over a stream that a peer has opened. `unitBytesMax` is nil if the stream has already closed.
  func accepted(_ descriptor: CInt, _ peer: WireAddress, unitBytesMax: Int?) {
    guard delegate != nil, let unitBytesMax else {
      _ = close(descriptor)
      return
    }
    if let dial, dial.peer == peer { peerCameFirst(dial.process, dial.token) }
    opened(descriptor, peer, unitBytesMax, token: 0, isInbound: true)
  }

  private func opened(
    _ descriptor: CInt, _ peer: WireAddress, _ unitBytesMax: Int, token: UInt32, isInbound: Bool
  ) {
    guard let delegate else {
      _ = close(descriptor)
      return
    }
    // The kernel does not report a connection that an earlier process left, so the stream is the only evidence of such
    // a connection.
    if peer.isClassic { connected(peer, isCentral: false) }
    delegate.bearerOpened(
      StreamHandoff(
        descriptor: descriptor, bearer: peer.bearer, isInbound: isInbound, token: token, unitBytesMax: unitBytesMax,
        interfaceIndex: 0, remote: peer.remote))
  }

  /// Ends this node's dial to a peer that has opened a stream itself. The dial's pending connection would never be
  /// made, because a connection to the peer exists now. The pending connection would only keep the radio from other
  /// dials.
  private func peerCameFirst(_ process: any Dial, _ token: UInt32) {
    guard process.yields() else {
      dial?.isDiallingUs = true
      return
    }
    dial = nil
    overtaken.add(token, loop.now)
    dialEnded(isSuccess: true)
  }

  /// Notifies `RadioPlan` whether a dial can start. If all link slots are in use and a link is about to end, the dial
  /// waits for its slot.
  func dialsChanged() {
    plan.handle(.dialsWaiting(!dials.isEmpty && (plan.hasFreeSlot || leaving.isEmpty)), loop.now)
  }

  func startDial() {
    guard let working = adapter.working, !dials.isEmpty else { return dialEnded(isSuccess: true) }
    let (peer, token) = dials.removeFirst()
    dialsChanged()
    // The request for a second channel on the same connection could have the number of the peer's request (see
    // `L2CAPDial.dialDeferral`).
    if hasStream(peer.remote) {
      overtaken.add(token, loop.now)
      return dialEnded(isSuccess: true)
    }
    guard linked.contains(peer) || (peer.isClassic ? hasClassicSlot : plan.hasFreeSlot) else {
      let slots = peer.isClassic ? ClassicRadio.linksMax : settings.linksMax
      delegate?.bearerDialFailed(token: token, reason: "all \(slots) Bluetooth link slots are in use")
      return dialEnded(isSuccess: true)
    }
    let process = process(working.address, peer)
    dial = (process, peer, token, false)
    process.start(timeout: settings.dialTimeout) { [self] outcome in
      let sharesConnection = dial?.isDiallingUs ?? false
      dial = nil
      var isSuccess = false
      switch outcome {
      case .opened(let descriptor, let unitBytesMax, let psm):
        isSuccess = true
        candidates.opened(peer, psm: psm)
        opened(descriptor, peer, unitBytesMax, token: token, isInbound: false)
      case .failed(let reason, let error):
        let text = error.map { "\(reason): \($0.text)" } ?? reason.description
        delegate?.bearerDialFailed(token: token, reason: text)
      case .unanswered(let reason):
        if !sharesConnection { adapter.post(.disconnect(working.index, peer)) }
        delegate?.bearerDialFailed(token: token, reason: reason.description)
      }
      // A dial over BR/EDR takes long, and any device can answer an inquiry. So a peer where dials repeatedly lead to
      // no node is withheld for a time.
      if peer.isClassic, let lost = classicCandidates.dialled(peer, loop.now) { delegate?.bearerLost(lost) }
      dialEnded(isSuccess: isSuccess)
    }
  }

  private func process(_ adapter: UInt64, _ peer: WireAddress) -> any Dial {
    guard let endpoint = peer.endpoint else {
      return ClassicDial(loop, to: peer.address) { (channel) throws(SystemError) in
        guard let channel else { return try L2CAPSocket.connectRecords(adapter, to: peer.address) }
        return try RFCOMMSocket.connect(adapter, to: peer.address, channel)
      }
    }
    // The kernel may have stored the slow parameters of an earlier connection, and would use them for the new one.
    load(.initial, endpoint)
    return L2CAPDial(loop, from: adapter, to: endpoint, psm: candidates.takePSM(peer), attributes)
  }

  private func dialEnded(isSuccess: Bool) {
    plan.handle(.dialEnded(isSuccess: isSuccess), loop.now)
    // The timer calls `advance`, because a dial can end while `advance` is carrying it out.
    timer?.set(loop.now)
  }
}
