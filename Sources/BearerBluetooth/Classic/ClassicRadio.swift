import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// The state of Bluetooth classic, for status.
public struct ClassicSnapshot: Equatable, Sendable {
  /// The number of this node's RFCOMM server channel; nil while peers cannot connect.
  public var channel: UInt8?
  /// The current number of BR/EDR links, and their limit.
  public var links = 0
  public var linksMax: Int
  /// Whether the controller answers inquiries.
  public var isDiscoverable: Bool
  public var isInquiring = false
  public var isDialling = false
  /// How long the controller has inquired and dialled since the start.
  public var inquiringTime = TimeSpan.seconds(0)
  public var diallingTime = TimeSpan.seconds(0)
  /// Why classic does not work; nil if it works, or while the controller is absent.
  public var problem: String?
}

/// Bluetooth classic (BR/EDR) on one controller, with or without LE, for peers that support only classic. Peers find
/// this node by inquiry, and read the number of its RFCOMM channel from its service record. RFCOMM connections are
/// handed over as streams. `RadioPlan` decides when this controller inquires and dials.
///
/// There is no bonding, and no pairing that asks a person: TLS above the stream authenticates.
final class ClassicRadio {
  /// The maximum number of BR/EDR links: the active members of a piconet (Core Specification 5.4, Vol 1, Part A, 3.4).
  static let linksMax = 7
  /// The device class: a network access point that is fully available (Assigned Numbers, 2.8.2).
  private static let deviceClass: (major: UInt8, minor: UInt8) = (3, 0)

  var report: ((String, _ isFault: Bool) -> Void)?
  /// A peer has opened a stream. The callback receives ownership of the descriptor.
  var accepted: ((CInt, _ address: UInt64) -> Void)?

  private let loop: EventLoop
  private let adapter: Adapter
  private let claim: CausewayService.Claim
  /// The network access point; nil if peers may not join a bridge.
  let network: NetworkAccessPoint?
  private let open: (_ adapter: UInt64) throws(SystemError) -> Sockets
  private var channel: UInt8?
  private var listeners: [BluetoothListener] = []
  private var records: SDPConnections?
  /// Whether the setup is complete: peers can find this node, and this node is allowed to search for peers.
  private(set) var isDiscoverable = false
  private var problem: String?

  /// The listening sockets: `streams` for RFCOMM connections on `channel`, and `records` for clients that read service
  /// records.
  typealias Sockets = (streams: CInt, channel: UInt8, records: CInt)

  /// `bridge`: the bridge that peers may join; empty for none. `open` opens the listeners at the controller with this
  /// address; tests use sockets of another family.
  init(
    _ loop: EventLoop, _ adapter: Adapter, _ claim: CausewayService.Claim, bridge: String,
    open: @escaping (UInt64) throws(SystemError) -> Sockets
  ) {
    self.loop = loop
    self.open = open
    network = bridge.utf8.isEmpty ? nil : NetworkAccessPoint(loop, bridge: bridge)
    self.adapter = adapter
    self.claim = claim
  }

  var snapshot: ClassicSnapshot {
    ClassicSnapshot(
      channel: channel, linksMax: Self.linksMax, isDiscoverable: isDiscoverable, problem: problem)
  }

  /// Starts at a controller that is up: listens, and lets peers find this node.
  func start(_ working: Adapter.Working) {
    do throws(SystemError) {
      let sockets = try open(working.address)
      network?.start(working)
      let records = SDPConnections(loop, SDPServer(channel: sockets.channel, hasNetwork: hasNetwork))
      let isListening = listen(sockets.streams, RFCOMMSocket.accept) { [self] in take($0, $1) }
      let isServing = listen(sockets.records, L2CAPSocket.accept) { descriptor, peer in
        let unitBytes = (try? L2CAPSocket.sendUnitBytesMaxClassic(descriptor)) ?? SDP.unitBytesMin
        records.adopt(descriptor, peer, unitBytes: unitBytes)
      }
      guard isListening, isServing else { throw SystemError.last }
      self.records = records
      channel = sockets.channel
    } catch {
      close()
      return fail("peers cannot connect: \(Self.remedy(error))")
    }
    perform(commands(working.index), 0)
  }

  /// Returns false, with errno set and the descriptor closed, if the descriptor cannot be watched.
  private func listen(
    _ descriptor: CInt, _ accept: @escaping (CInt) throws(SystemError) -> (descriptor: CInt, peer: BluetoothEndpoint),
    _ accepted: @escaping (CInt, BluetoothEndpoint) -> Void
  ) -> Bool {
    let listener = try? BluetoothListener(
      loop, descriptor, accept: accept, accepted, shortage: { [self] error in reportShortage(error) })
    if let listener { listeners.append(listener) }
    return listener != nil
  }

  static func openSockets(_ adapter: UInt64) throws(SystemError) -> Sockets {
    let (streams, channel) = try RFCOMMSocket.listen(adapter)
    do throws(SystemError) {
      return (streams, channel, try L2CAPSocket.listenForRecords(adapter))
    } catch {
      _ = CSystem.close(streams)
      throw error
    }
  }

  /// Stops, because the controller is down.
  func stop() {
    close()
    isDiscoverable = false
    problem = nil
  }

  /// Hides this node from peers, just before the process ends. A controller that is not connectable is not discoverable
  /// either, so one command suffices. The kernel would refuse a second one as busy.
  func hide(_ index: UInt16) {
    adapter.post(.setConnectable(index, false))
    adapter.post(.removeUUIDs(index))
  }

  private func take(_ descriptor: CInt, _ peer: BluetoothEndpoint) {
    guard let accepted else {
      _ = CSystem.close(descriptor)
      return
    }
    accepted(descriptor, peer.address)
  }

  private func close() {
    for listener in listeners { listener.close() }
    listeners = []
    records?.channels.closeAll()
    records = nil
    network?.stop()
    channel = nil
  }

  private var hasNetwork: Bool { network?.isOpen ?? false }

  private func commands(_ index: UInt16) -> [ManagementCommand] {
    var commands: [ManagementCommand] = [
      .setSimplePairing(index, true), .setNoInputNoOutput(index), .setConnectable(index, true),
      .setLocalName(index, "Causeway"),
      // UUIDs of an earlier process that was killed are still registered.
      .removeUUIDs(index), .addUUID(index, CausewayService.uuid), .addUUID(index, CausewayService.claimUUID(claim)),
    ]
    if hasNetwork { commands.append(.addNetworkAccessPoint(index)) }
    // The device class is set after the UUIDs. In the other order, the kernel adds the UUIDs to answers to inquiries
    // only after 2 s, because it waits for further UUIDs.
    commands.append(.setDeviceClass(index, major: Self.deviceClass.major, minor: Self.deviceClass.minor))
    commands.append(.setDiscoverable(index, true))
    return commands
  }

  private func perform(_ commands: [ManagementCommand], _ position: Int) {
    guard channel != nil else { return }
    guard position < commands.count else {
      isDiscoverable = true
      problem = nil
      report?("peers can connect", false)
      return
    }
    adapter.send(commands[position]) { [self] outcome in
      guard channel != nil else { return }
      if let problem = outcome.problem {
        return fail("peers cannot find this box: the kernel refuses command \(commands[position].opcode): \(problem)")
      }
      perform(commands, position + 1)
    }
  }

  private func fail(_ text: String) {
    problem = text
    report?(text, true)
  }

  private func reportShortage(_ error: SystemError?) {
    if let error { return fail("cannot accept connections: \(error.text). Trying every second.") }
    problem = nil
    report?("accepts connections again", false)
  }

  private static func remedy(_ error: SystemError) -> String {
    switch error.code {
    case EPROTONOSUPPORT: "the kernel has no RFCOMM: run “modprobe rfcomm”, or set [bluetooth] classic = no"
    case EADDRINUSE: "another program serves service records: stop bluetoothd"
    case EACCES: "no permission for the service records: run with CAP_NET_BIND_SERVICE"
    case _: error.text
    }
  }
}
