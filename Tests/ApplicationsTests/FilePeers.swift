import LocalAPI
import Primitives
import Session
import Transfer
import TransferFiles

@testable import Applications

/// A receiver of files at the other end of a scripted connection. It accepts each offer into a directory.
final class FileReceiver {
  private let directory: String
  private var work = IncomingWork()
  /// The number of bytes of the sender's stream that were handled.
  private var handled = 0
  private var hasGrantedRoom = false
  private var hasOpenedAnswer = false
  private var hasEnded = false

  init(into directory: String) { self.directory = directory }

  /// The next event for the sender; nil if there is none now.
  func respond(_ connection: ScriptedConnection) -> LocalEvent? {
    let stream = connection.openedStream
    guard stream != 0 else { return nil }
    if !hasGrantedRoom {
      hasGrantedRoom = true
      return .streamRoom(stream: stream, limit: 1 << 20)
    }
    if !hasOpenedAnswer {
      guard case .offer(_, let attempt)? = connection.openedName.flatMap({ ResourceStream($0) }) else { return nil }
      hasOpenedAnswer = true
      return .stream(session: 1, stream: 50, from: bob, ResourceStream.answer(attempt: attempt).name)
    }
    let written = connection.written[stream] ?? []
    if handled < written.count {
      let answer = receive(Array(written[handled...]))
      handled = written.count
      if !answer.isEmpty { return .streamBytes(stream: connection.takenStream, answer) }
    }
    guard !hasEnded, connection.requests.contains(.finish(stream: stream)) else { return nil }
    hasEnded = true
    return .streamEnded(object: stream, received: 0, .finished)
  }

  /// Handles bytes of the sender, and returns the records for the sender.
  private func receive(_ bytes: [UInt8]) -> [UInt8] {
    let step = work.receive(bytes)
    guard let offer = step.offer else { return step.bytes }
    let accepted = try? work.accept(directory, .max, offer, from: Array("alice".utf8))
    return step.bytes + (accepted?.bytes ?? [])
  }
}

/// A sender of files at the other end of a scripted connection.
final class FileSender {
  let manifest: Manifest
  private var work: OutgoingWork
  private var handled = 0
  private var hasGrantedRoom = false
  private var hasFinished = false
  private var hasEnded = false

  init(_ source: ResourceSource) {
    manifest = source.manifest
    work = OutgoingWork(source)
    work.start()
  }

  /// The stream on which the sender offers its files.
  var offer: LocalEvent { offer(from: bob, session: 2, stream: 70) }

  func offer(from sender: MemberAddress, session: UInt32, stream: UInt32) -> LocalEvent {
    let name = ResourceStream.offer(resource: ResourceStream.resource(manifest.digest), attempt: 1).name
    return .stream(session: session, stream: stream, from: sender, name)
  }

  /// The address of a sender whose id begins with the digits `number`.
  static func address(_ number: UInt64) -> MemberAddress {
    MemberAddress(node: NodeID(high: number << 32, low: 1), endpoint: 1)
  }

  /// The steps in which this sender, at `address(number)` and with the name “p” and the number, invites and offers.
  func offers(as number: UInt64, isVerified: Bool = false) -> [ScriptedConnection.Step] {
    let address = Self.address(number), peer = peer("p\(number)", isVerified: isVerified)
    func session(_ connection: ScriptedConnection) -> UInt32 {
      connection.number { if case .open = $0 { true } else { false } }
    }
    return [
      .event(invited(by: address, peer, rules: FileLimits.rules, number: UInt32(90 + number))),
      .answer { connected(address, peer, session: session($0)) },
      .answer { self.offer(from: address, session: session($0), stream: UInt32(700 + number)) },
      .answer { self.respond($0)! }, .answer { self.respond($0)! },
    ]
  }

  /// The event with which the user of the sender cancels the transfer.
  func cancel(_ connection: ScriptedConnection) -> LocalEvent {
    work.cancel()
    return .streamBytes(stream: connection.takenStream, work.step().bytes)
  }

  /// The next event for the receiver; nil if there is none now.
  func respond(_ connection: ScriptedConnection) -> LocalEvent? {
    let stream = connection.takenStream, answer = connection.openedStream
    guard stream != 0, answer != 0 else { return nil }
    if !hasGrantedRoom {
      hasGrantedRoom = true
      return .streamRoom(stream: answer, limit: 1 << 20)
    }
    let written = connection.written[answer] ?? []
    if handled < written.count {
      work.receive(Array(written[handled...]))
      handled = written.count
    }
    var isMore = work.outcome == nil
    while isMore {
      let step = work.step()
      isMore = step.isMore && step.outcome == nil
      if !step.bytes.isEmpty { return .streamBytes(stream: stream, step.bytes) }
    }
    if work.outcome != nil && !hasFinished {
      hasFinished = true
      return .streamEnded(object: stream, received: 0, .finished)
    }
    guard !hasEnded, connection.requests.contains(.finish(stream: answer)) else { return nil }
    hasEnded = true
    return .streamEnded(object: answer, received: 0, .finished)
  }
}
