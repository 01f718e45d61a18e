import Bearer
import CSystem
import Primitives
import Reactor

/// One dial over BR/EDR. The dial connects to the peer's server of service records (SDP), for which the controller
/// pages the peer. Then the dial opens the stream on the RFCOMM channel that the records name. Connecting, the complete
/// answer of the server, and opening the stream take at most `timeout` each.
final class ClassicDial: EventSource, Dial {
  private enum Step {
    case connecting(CInt, Registration, isStream: Bool)
    case asking
    case ended
  }

  private let loop: EventLoop
  private let peer: UInt64
  private let open: (_ channel: UInt8?) throws(SystemError) -> CInt
  private var finished: ((DialOutcome) -> Void)?
  private var step = Step.ended
  private var client = SDPClient()
  /// The channel to the peer's service records. The channel stays open until the dial ends, which keeps the connection
  /// open too.
  private var records: RequestChannel?
  private var timeout = TimeSpan.seconds(0)
  private var timer: Timer?

  /// `open` begins to connect to an RFCOMM channel, or to the service records if `channel` is nil.
  init(_ loop: EventLoop, to peer: UInt64, open: @escaping (_ channel: UInt8?) throws(SystemError) -> CInt) {
    self.loop = loop
    self.peer = peer
    self.open = open
  }

  func start(timeout: TimeSpan, _ finished: @escaping (DialOutcome) -> Void) {
    self.finished = finished
    self.timeout = timeout
    timer = Timer(loop) { [self] in expire() }
    connect(nil)
  }

  func cancel() {
    finished = nil
    finish("cancelled")
  }

  func yields() -> Bool {
    switch step {
    case .connecting(_, _, isStream: true), .ended: return false
    case .connecting, .asking: break
    }
    cancel()
    return true
  }

  func ready(_ events: UInt32) {
    guard case .connecting(let descriptor, let registration, let isStream) = step else { return }
    if let error = L2CAPSocket.connectError(descriptor) {
      return finish(isStream ? "the peer refused the stream" : "no connection", error)
    }
    loop.remove(registration)
    step = .asking
    if isStream { return end(.opened(descriptor, unitBytesMax: .max, psm: 0)) }
    let endpoint = BluetoothEndpoint(address: peer, isRandom: false)
    records = try? RequestChannel(loop, descriptor, endpoint, SDPConnections.rules) { _ in nil }
    timer?.set(after: timeout)
    ask(client.begin())
  }

  private func connect(_ channel: UInt8?) {
    timer?.set(after: timeout)
    do throws(SystemError) {
      let descriptor = try open(channel)
      do throws(SystemError) {
        step = .connecting(descriptor, try loop.add(descriptor, .write, .admission, self), isStream: channel != nil)
      } catch {
        _ = close(descriptor)
        throw error
      }
    } catch {
      finish("cannot connect", error)
    }
  }

  private func ask(_ request: [UInt8]) {
    guard let records else { return finish("cannot watch the channel to its service records") }
    records.ask(request) { [self] answer in
      answered(answer)
      return true
    }
  }

  private func answered(_ answer: [UInt8]?) {
    // The channel to the service records can end while the stream opens, which is no failure.
    guard case .asking = step else { return }
    guard let answer else { return finish("the connection ended before the peer sent its channel") }
    switch client.received(answer) {
    case .ask(let request): ask(request)
    case .channel(let channel): connect(channel)
    case .absent: finish("the peer offers no Causeway service")
    case .refused: finish("the peer refuses to send its channel")
    case .malformed: finish("the peer's service record cannot be read")
    }
  }

  private func expire() {
    switch step {
    case .connecting(_, _, isStream: false): finish("it did not answer in time")
    case .asking: finish("its service record did not arrive in time")
    case .connecting, .ended: finish("its stream did not open in time")
    }
  }

  private func finish(_ reason: StaticString, _ error: SystemError? = nil) { end(.failed(reason, error)) }

  private func end(_ outcome: DialOutcome) {
    if case .connecting(let descriptor, let registration, _) = step {
      loop.remove(registration)
      _ = close(descriptor)
    }
    step = .ended
    timer?.cancel()
    timer = nil
    records?.cancelQuestion()
    records?.close()
    records = nil
    let finished = finished
    self.finished = nil
    finished?(outcome)
  }
}
