import Bearer
import CSystem
import Primitives
import Reactor
import Testing

@testable import BearerIP

/// Records what a bearer reports.
final class Recorder: BearerDelegate {
  var opened: [StreamHandoff] = []
  var failed: [(token: UInt32, reason: String)] = []
  var found: [Candidate] = []
  var lost: [Candidate] = []
  var reports: [(text: String, isFault: Bool)] = []

  func bearerOpened(_ stream: StreamHandoff) { opened.append(stream) }
  func bearerDialFailed(token: UInt32, reason: String) { failed.append((token, reason)) }
  func bearerFound(_ candidate: Candidate) { found.append(candidate) }
  func bearerLost(_ candidate: Candidate) { lost.append(candidate) }
  func bearerReport(_ source: StaticString, _ text: String, isFault: Bool) { reports.append((text, isFault)) }

  deinit { for stream in opened { close(stream.descriptor) } }
}

/// A node's IP bearer on the loopback interface, with a TCP port of its own.
struct Node {
  let loop: EventLoop
  let recorder = Recorder()
  let bearer: IPBearer

  init(
    _ loop: EventLoop, _ change: (inout IPBearerSettings) -> Void = { _ in },
    enumerate: @escaping (InterfaceRules) -> [NetworkInterface]? = enumerateInterfaces
  ) {
    self.loop = loop
    var settings = IPBearerSettings()
    settings.allowsLoopback = true
    settings.port = 0
    change(&settings)
    bearer = IPBearer(loop, settings, recorder, enumerate: enumerate)
    bearer.start()
  }
}

let loopbackIPv4: UInt32 = 0x7F00_0001

func candidate(_ endpoint: IPEndpoint) -> Candidate { Candidate(bearer: .loopback, address: .ip(endpoint), hint: 0) }

/// A listening socket that never accepts. The queue of this socket, for one connection, is full, so further connections
/// get no answer.
func makeFullListener() throws -> (descriptor: CInt, port: UInt16, filler: CInt) {
  let descriptor = try openStreamSocket(AF_INET)
  let address = SocketAddress(IPEndpoint(ipv4: loopbackIPv4, port: 0))
  try #require(address.with({ bind(descriptor, $0, $1) }) == 0 && listen(descriptor, 0) == 0)
  let port = try #require(localEndpoint(descriptor)?.port)
  let filler = try openStreamSocket(AF_INET)
  let target = SocketAddress(IPEndpoint(ipv4: loopbackIPv4, port: port))
  _ = target.with { connect(filler, $0, $1) }
  return (descriptor, port, filler)
}

func hasIPv6Loopback() -> Bool {
  guard let descriptor = try? openStreamSocket(AF_INET6) else { return false }
  defer { close(descriptor) }
  return SocketAddress(IPEndpoint(high: 0, low: 1, port: 0, scope: 0)).with({ bind(descriptor, $0, $1) }) == 0
}
