import Bearer
import CBluetooth
import CSystem
import Primitives
import Reactor

/// One dial over LE. The dial connects the attribute channel, reads the peer's PSM over that channel, and opens a
/// credit-based channel on the PSM. Connecting takes at most `timeout`, and each of the peer's two answers at most
/// `answerTime`. If the PSM is already known, the dial opens the channel at once, which saves two connection intervals.
/// In this case, the dial reads the PSM only if the peer refuses the channel.
final class L2CAPDial: EventSource, Dial {
  /// The time limit for each of the peer's answers on an existing link: some of the long connection intervals that
  /// phones set.
  static let answerTime = TimeSpan.seconds(2)

  /// How long a peer that made the link may take to open its channel, before this node requests a channel itself. The
  /// channel requests of two nodes can have the same number (identifier) and cross on one link. Linux then confuses the
  /// answers, and neither channel carries data. On a new link, `L2CAPSocket.skipNumber` makes the numbers differ. Later
  /// the numbers are unknown, because packets of credits use up numbers too. So a peer with an open channel is not
  /// dialled.
  static let dialDeferral = TimeSpan.milliseconds(1_500)

  private enum Step {
    /// The peer made the link, most likely to dial this node. This dial waits for the peer to open a channel.
    case yielding
    case connectingAttributes(CInt, Registration)
    case asking(RequestChannel)
    case openingChannel(CInt, Registration, psm: UInt16, isKnown: Bool)
    case ended
  }

  private let loop: EventLoop
  private let adapter: UInt64
  private let peer: BluetoothEndpoint
  private let attributes: AttributeConnections
  private let knownPSM: UInt16?
  private var finished: ((DialOutcome) -> Void)?
  private var step = Step.ended
  /// The attribute channel, if this dial connected it. The attribute channel stays open after a successful dial.
  private var own: RequestChannel?
  private var timer: Timer?

  init(
    _ loop: EventLoop, from adapter: UInt64, to peer: BluetoothEndpoint, psm: UInt16?,
    _ attributes: AttributeConnections
  ) {
    knownPSM = psm
    self.loop = loop
    self.adapter = adapter
    self.peer = peer
    self.attributes = attributes
  }

  func start(timeout: TimeSpan, _ finished: @escaping (DialOutcome) -> Void) {
    self.finished = finished
    timer = Timer(loop) { [self] in expire() }
    timer?.set(after: timeout)
    // A link that the peer made already has its attribute channel, and a link can have only one.
    if let connection = attributes.channels.existing(peer) {
      // This node had dialled the peer, whose process has restarted since. The peer is not expected to dial this node.
      if connection.isOfOurDial && knownPSM != nil { return reach(connection) }
      step = .yielding
      timer?.set(after: Self.dialDeferral)
      connection.ended = { [self] in yieldedInVain(timeout) }
      return
    }
    connect()
  }

  /// Connects, because the peer's link ended before the peer opened a channel. Most likely the peer's process had died.
  private func yieldedInVain(_ timeout: TimeSpan) {
    guard case .yielding = step else { return }
    timer?.set(after: timeout)
    connect()
  }

  private func connect() {
    do throws(SystemError) {
      let descriptor = try L2CAPSocket.connectAttributes(adapter, to: peer)
      step = .connectingAttributes(descriptor, try watch(descriptor))
    } catch {
      finish(.failed("cannot connect", error))
    }
  }

  func cancel() {
    finished = nil
    finish(.failed("cancelled", nil))
  }

  func yields() -> Bool {
    switch step {
    case .yielding, .connectingAttributes, .asking: break
    case .openingChannel, .ended: return false
    }
    cancel()
    return true
  }

  func ready(_ events: UInt32) {
    switch step {
    case .connectingAttributes(let descriptor, let registration):
      if let error = L2CAPSocket.connectError(descriptor) {
        return finish(.failed("no connection", error))
      }
      loop.remove(registration)
      step = .ended
      guard let connection = attributes.adopt(descriptor, peer) else {
        return finish(.failed("all attribute channels are in use", nil))
      }
      own = connection
      connection.isOfOurDial = true
      reach(connection)
    case .openingChannel(let descriptor, let registration, let psm, let isKnown):
      if let error = L2CAPSocket.connectError(descriptor) {
        if isKnown, let connection = attributes.channels.existing(peer) {
          loop.remove(registration)
          _ = close(descriptor)
          return ask(connection)
        }
        return finish(.failed("the peer refused the channel", error))
      }
      do throws(SystemError) {
        let unitBytesMax = try L2CAPSocket.prepare(descriptor)
        loop.remove(registration)
        step = .ended
        finish(.opened(descriptor, unitBytesMax: unitBytesMax, psm: psm))
      } catch {
        finish(.failed("the channel closed at once", error))
      }
    case .yielding, .asking, .ended: break
    }
  }

  private func reach(_ connection: RequestChannel) {
    guard let knownPSM else { return ask(connection) }
    timer?.set(after: Self.answerTime)
    open(knownPSM, isKnown: true)
  }

  private func ask(_ connection: RequestChannel) {
    step = .asking(connection)
    timer?.set(after: Self.answerTime)
    connection.ask(AttributeClient.psmRequest) { [self] pdu in
      guard let pdu else {
        finish(.failed("the link ended before the peer sent its PSM", nil))
        return true
      }
      guard AttributeClient.isAnswer(pdu) else { return false }
      switch AttributeClient.answer(pdu) {
      case .psm(let psm):
        timer?.set(after: Self.answerTime)
        open(psm, isKnown: false)
      case .refused: finish(.failed("the peer offers no Causeway service", nil))
      case .malformed: finish(.failed("the peer's PSM answer is malformed", nil))
      }
      return true
    }
  }

  private func open(_ psm: UInt16, isKnown: Bool) {
    if !peer.isRandom && adapter > peer.address { L2CAPSocket.skipNumber(adapter, to: peer) }
    do throws(SystemError) {
      let descriptor = try L2CAPSocket.connectChannel(adapter, to: peer, psm: psm)
      step = .openingChannel(descriptor, try watch(descriptor), psm: psm, isKnown: isKnown)
    } catch {
      finish(.failed("cannot open the channel", error))
    }
  }

  private func watch(_ descriptor: CInt) throws(SystemError) -> Registration {
    do throws(SystemError) {
      return try loop.add(descriptor, .write, .admission, self)
    } catch {
      _ = close(descriptor)
      throw error
    }
  }

  private func expire() {
    switch step {
    case .yielding:
      guard let connection = attributes.channels.existing(peer) else { return connect() }
      reach(connection)
    case .connectingAttributes: finish(.failed("it did not answer in time", nil))
    case .asking(let connection):
      own = connection
      finish(.unanswered("its attribute server did not answer in time"))
    case .openingChannel: finish(.unanswered("its channel did not open in time"))
    case .ended: finish(.failed("gave up", nil))
    }
  }

  private func finish(_ outcome: DialOutcome) {
    switch step {
    case .connectingAttributes(let descriptor, let registration),
      .openingChannel(let descriptor, let registration, psm: _, isKnown: _):
      loop.remove(registration)
      _ = close(descriptor)
    case .asking(let connection): connection.cancelQuestion()
    case .yielding, .ended: break
    }
    step = .ended
    timer?.cancel()
    timer = nil
    // The link of a failed dial must not occupy a link slot until the attribute channel's idle timeout.
    switch outcome {
    case .opened: break
    case .failed, .unanswered: own?.close()
    }
    own = nil
    let finished = finished
    self.finished = nil
    finished?(outcome)
  }
}
