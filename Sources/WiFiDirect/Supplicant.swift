import BearerIP
import CSystem
import Primitives
import Reactor

/// The connection to wpa_supplicant, through its global socket or an interface's own socket.
///
/// On the global socket, a command for an interface contains the interface's name. Without a global socket, P2P events
/// arrive on the socket of the p2p-dev device. If the driver has no such device, these events arrive on the socket of
/// the radio's interface. Each other interface, such as the interface of the group, gets its own channel on first use.
///
/// `@inline(never)` keeps the code of the many call sites small.
final class Supplicant {
  /// The maximum number of interfaces with their own channel.
  private static let channelsMax = 4

  /// Whether the connection uses the global socket, which INTERFACE_ADD and similar commands require.
  let isGlobal: Bool
  private let loop: EventLoop
  private let directory: String
  private let clientDirectory: String
  private let mainInterface: String
  private var main: SupplicantChannel?
  private var others: [(interface: String, channel: SupplicantChannel)] = []
  private let received: (SupplicantMessage) -> Void

  /// Connects to the first socket that works: the global socket, the socket of the p2p-dev device, or the socket of the
  /// interface. `failed` is called by the event loop, at most once, after that connection has closed. Throws an error
  /// that states what is missing, and the remedy.
  init(
    _ loop: EventLoop, _ options: WiFiDirectOptions, received: @escaping (SupplicantMessage) -> Void,
    failed: @escaping (String) -> Void
  ) throws(SupplicantAbsentError) {
    self.loop = loop
    self.received = received
    clientDirectory = options.usedClientDirectory
    directory = parentDirectory(options.controlSocket)
    let device = p2pDeviceInterface(options.interface)
    let candidates: [(path: String, interface: String)] = [
      (options.controlSocket, ""), ("\(directory)/\(device)", device),
      ("\(directory)/\(options.interface)", options.interface),
    ]
    var error = SystemError(code: ENOENT)
    for candidate in candidates {
      if access(candidate.path, F_OK) != 0 {
        if csystem_errno() != ENOENT { error = .last }
        continue
      }
      do {
        let interface = candidate.interface
        main = try SupplicantChannel(
          loop, path: candidate.path, clientDirectory: clientDirectory,
          received: { message in
            var message = message
            if message.interface.utf8.isEmpty { message.interface = interface }
            received(message)
          }, failed: failed)
        mainInterface = interface
        isGlobal = interface.utf8.isEmpty
        return
      } catch let failure {
        error = failure
      }
    }
    let socket = options.controlSocket
    let text =
      switch error.code {
      case ENOENT: "no wpa_supplicant at \(socket): start it with -g \(socket)"
      case EACCES: "wpa_supplicant at \(socket): permission denied; start it with -G and a group of the daemon's user"
      default: "wpa_supplicant at \(socket): \(error.text)"
      }
    throw SupplicantAbsentError(text: text)
  }

  /// Sends a global or Wi-Fi Direct command.
  func send(_ command: String, _ completion: @escaping (SupplicantReply) -> Void = { _ in }) {
    main?.send(command, completion)
  }

  /// Sends a command to one interface. Without a global socket, `completion` is never called if the interface has no
  /// socket.
  @inline(never)
  func send(
    to interface: String, _ command: String, _ completion: @escaping (SupplicantReply) -> Void = { _ in }
  ) {
    if isGlobal {
      main?.send("IFNAME=\(interface) \(command)", completion)
    } else {
      channel(interface)?.send(command, completion)
    }
  }

  /// Sends a command to one interface just before `close`, without waiting for the reply.
  @inline(never)
  func sendLast(to interface: String, _ command: String) {
    if isGlobal {
      main?.sendLast("IFNAME=\(interface) \(command)")
    } else {
      channel(interface)?.sendLast(command)
    }
  }

  func sendLast(_ command: String) { main?.sendLast(command) }

  /// Whether no command on the main socket is queued or awaits its reply.
  var isIdle: Bool { main?.isIdle ?? true }

  func close() {
    main?.close()
    main = nil
    for other in others { other.channel.close() }
    others = []
  }

  private func channel(_ interface: String) -> SupplicantChannel? {
    if sameText(interface, mainInterface) { return main }
    for other in others where sameText(other.interface, interface) { return other.channel }
    if others.count >= Self.channelsMax { others.removeFirst().channel.close() }
    let received = received
    let opened = try? SupplicantChannel(
      loop, path: "\(directory)/\(interface)", clientDirectory: clientDirectory,
      received: { message in
        var message = message
        message.interface = interface
        received(message)
      }, failed: { [self] _ in others.removeAll { sameText($0.interface, interface) } })
    if let opened { others.append((interface, opened)) }
    return opened
  }
}

/// wpa_supplicant cannot be reached. The text states the reason and the remedy.
struct SupplicantAbsentError: Error {
  var text: String
}

/// wpa_supplicant's name for the P2P device of an interface, truncated to the kernel's limit of 15 bytes.
func p2pDeviceInterface(_ interface: String) -> String {
  String(decoding: "p2p-dev-\(interface)".utf8.prefix(15), as: UTF8.self)
}

func parentDirectory(_ path: String) -> String {
  let bytes = Array(path.utf8)
  guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return "." }
  return String(decoding: bytes[..<slash], as: UTF8.self)
}
