extension Session {
  /// Waits for nobody to be asked: offers the session's type, accepts who invites, and invites who offers it, until
  /// the session ends or the task is cancelled. Of two that find each other the lower node invites at once, the other
  /// one only when it has not come after 5 s; of invitations that cross, the daemon lets one stand.
  ///
  /// Who declined or left is not invited again before it was lost and found. Who did not answer is tried again
  /// 10 s later. docs/protocol.md, “Invitations”.
  ///
  /// - Parameters:
  ///   - info: discovery info, as for `Node.advertise`.
  ///   - isWelcome: decides on each that is found or invites, by address and peer.
  /// - Throws: what `Node.advertise` and `Node.browse` throw, and `daemonEnded`.
  public func gather(
    info: [String: String] = [:], where isWelcome: @escaping @Sendable (Address, Peer) -> Bool = { _, _ in true }
  ) async throws(CausewayError) {
    let advertiser = try await node.advertise(type, info: info)
    let browser = try await node.browse(type)
    let closing = Task {
      _ = await inside.ended.value()
      advertiser.close()
      browser.close()
    }
    let admitting = Task { await admit(advertiser, isWelcome) }
    defer {
      closing.cancel()
      admitting.cancel()
    }
    try await court(browser, isWelcome)
  }

  private func admit(_ advertiser: Advertiser, _ isWelcome: @Sendable (Address, Peer) -> Bool) async {
    // The daemon keeps at most 32 invitations, and each ends in time.
    await withDiscardingTaskGroup { group in
      var invitations = advertiser.makeAsyncIterator()
      while let invitation = try? await invitations.next() {
        guard isWelcome(invitation.from, invitation.peer) else { continue }
        group.addTask { try? await invitation.accept(into: self) }
      }
      group.cancelAll()
    }
  }

  private func court(_ browser: Browser, _ isWelcome: (Address, Peer) -> Bool) async throws(CausewayError) {
    var courting: [Address: Task<Void, Never>] = [:]
    defer { for task in courting.values { task.cancel() } }
    // What does not answer holds up no more than its places.
    let gate = Gate(8)
    var sightings = browser.makeAsyncIterator()
    while let sighting = try await sightings.next() {
      switch sighting {
      case .found(let service):
        guard isWelcome(service.address, service.peer) else { continue }
        courting[service.address] = Task { await invite(service.address, through: gate) }
      case .lost(let service): courting.removeValue(forKey: service.address)?.cancel()
      case .changed, .allTold: break
      }
    }
  }

  /// Invites until it is a member, or does not want to be.
  private func invite(_ address: Address, through gate: Gate) async {
    if address.node < node.id { try? await Task.sleep(for: .seconds(5)) }
    while !Task.isCancelled && inside.isOpen.isOpen {
      guard !members.contains(where: { $0.address == address }), await gate.enter() else { return }
      let mayTryAgain = await isWorthAnotherTry(address)
      gate.leave()
      guard mayTryAgain else { return }
      try? await Task.sleep(for: .seconds(10))
    }
  }

  private func isWorthAnotherTry(_ address: Address) async -> Bool {
    do {
      try await invite(address)
      return false
    } catch {
      return [.busy, .timedOut, .outOfReach, .full].contains(error.reason)
    }
  }
}
