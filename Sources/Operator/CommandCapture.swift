import CSystem
import Capture
import CommandLine
import Configuration
import ControlSocket
import Primitives
import Reactor
import Terminal

private let outputKey: CInt = 0x6F
private let linkKey: CInt = 0x6C
private let payloadKey: CInt = 0x70
private let countKey: CInt = 0x6E
private let secondsKey: CInt = 0x54
private let sizeKey: CInt = 0x7A

/// The limits at which a capture ends.
private struct CaptureBounds {
  var count = UInt64.max
  var bytes = UInt64.max
  var seconds: UInt64?
}

/// `causeway capture`
public func commandCapture(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var bounds = CaptureBounds()
  var wish = CaptureWish()
  var path: String?
  var peer: String?
  CommandParser.parse(
    "causeway capture", words,
    help: """
      Capture the headers of the frames that the box's links send and receive, as pcap, for Wireshark with \
      docs/wireshark/causeway.lua.\u{0B}ssh causeway-diag@box capture | wireshark -k -i -
      """,
    options: ClientOptions.options + [
      CommandOption(
        name: "output", key: outputKey, argument: "FILE", help: "Write to FILE; - is standard output, the default"),
      CommandOption(
        name: "link", key: linkKey, argument: "N|PEER", help: "Capture only this link, or only this neighbour"),
      CommandOption(
        name: "payload", key: payloadKey, argument: nil,
        help: "Include payloads; for root and the daemon's user. End-to-end encrypted data stays unreadable"),
      CommandOption(name: "count", key: countKey, argument: "N", help: "Stop after N frames"),
      CommandOption(name: "seconds", key: secondsKey, argument: "N", help: "Stop after N seconds"),
      CommandOption(
        name: "size", key: sizeKey, argument: "SIZE",
        help: "Stop before the file exceeds SIZE, in bytes or with k, M or G"),
    ]
  ) { key, value in
    if options.take(key, value) { return nil }
    switch key {
    case outputKey: path = value
    case linkKey:
      if let slot = ByteString(value).number(in: 0...UInt64(Limits.linksMax - 1)) {
        wish.link = UInt8(slot)
      } else if value.utf8.isEmpty {
        return "a link's number, or a peer's name or id"
      } else {
        peer = value
      }
    case payloadKey: wish.withPayload = true
    case countKey:
      guard let number = ByteString(value).number(in: 1...1_000_000_000) else { return "a number from 1 to 1000000000" }
      bounds.count = number
    case secondsKey:
      guard let seconds = parseSeconds(value) else { return secondsAccepted }
      bounds.seconds = seconds
    default:
      guard let bytes = byteCount(value) else { return "a number of bytes, optionally followed by k, M or G" }
      bounds.bytes = bytes
    }
    return nil
  }
  if path.map({ ByteString($0).equals("-") }) == true { path = nil }
  return run { () throws(CommandError) in
    if path == nil && isatty(STDOUT_FILENO) == 1 {
      throw CommandError(
        saying: "standard output is a terminal; name a file with --output, or pipe to “wireshark -k -i -”",
        ExitCode.usage)
    }
    if let peer { wish.neighbour = try PeerConnection(options).peer(named: peer, until: nil) }
    let client = try options.connect()
    let signals = Signals([SIGINT, SIGTERM])
    try client.begin(wish)
    try CaptureRun(client, signals, CaptureFile(path), bounds).run()
  }
}

extension ControlClient {
  /// Requests a capture. Returns when the daemon has started the capture.
  fileprivate func begin(_ wish: CaptureWish) throws(CommandError) {
    send(.capture(wish))
    while true {
      switch next(milliseconds: 10_000) {
      case .event(.frames): return
      case .event(.answer(_, let text)): throw CommandError(saying: text)
      case .event: continue
      case .closed(let reason): throw CommandError(saying: reason)
      case .timedOut: throw CommandError(saying: "the daemon did not answer for 10 s; see “causeway log”")
      }
    }
  }
}

/// One run of `causeway capture`.
private final class CaptureRun {
  private let client: ControlClient
  private let signals: Signals
  private let file: CaptureFile
  private let bounds: CaptureBounds
  private var frames: UInt64 = 0
  private var dropped: UInt64 = 0
  private var bytes: UInt64 = 0
  /// How often the daemon was polled after a signal. Frames that the daemon sent before the signal are still written.
  /// On a busy box frames never stop, so `looksAfterSignalMax` ends the polling.
  private var looksAfterSignal = 0
  private static let looksAfterSignalMax = 256

  init(_ client: ControlClient, _ signals: Signals, _ file: CaptureFile, _ bounds: CaptureBounds) {
    self.client = client
    self.signals = signals
    self.file = file
    self.bounds = bounds
  }

  func run() throws(CommandError) {
    let end = deadline(after: bounds.seconds)
    var goesOn = try put(CaptureFormat.fileHeader[...])
    while goesOn {
      guard try wait(until: end) else { break }
      switch client.next(milliseconds: 0) {
      case .event(.frames(let lost, let records)):
        dropped += UInt64(lost)
        goesOn = try take(records[...])
      case .event, .timedOut: continue
      case .closed(let reason): throw CommandError(saying: reason)
      }
    }
    printCounts()
  }

  /// Waits for the daemon. Returns false if `end` has passed. Also returns false after a signal, once all frames that
  /// the daemon sent before the signal have been read.
  private func wait(until end: Instant) throws(CommandError) -> Bool {
    let now = monotonicNow()
    if now >= end { return false }
    let left = end == .never ? -1 : CInt(clamping: ((end - now).nanoseconds + 999_999) / 1_000_000)
    var polled = [
      pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: client.descriptor, events: Int16(POLLIN), revents: 0),
      // Without requested events, poll reports only that the reader of the output is gone.
      pollfd(fd: file.descriptor, events: 0, revents: 0),
    ]
    poll(&polled, nfds_t(polled.count), left)
    if polled[2].revents != 0 { throw CommandError(ExitCode.failed) }
    if polled[0].revents == 0 { return true }
    looksAfterSignal += 1
    return polled[1].revents != 0 && looksAfterSignal <= Self.looksAfterSignalMax
  }

  /// Writes records, up to the limits of the capture. Returns false if a limit is reached, or if a signal arrived while
  /// the output was not writable.
  private func take(_ records: ArraySlice<UInt8>) throws(CommandError) -> Bool {
    var end = records.startIndex
    var isOver = false
    while !isOver, end < records.endIndex {
      guard let count = CaptureFormat.recordByteCount(records[end...]) else {
        throw CommandError(saying: "the daemon runs another version and its frames cannot be read; restart it")
      }
      if bytes + UInt64(end - records.startIndex + count) > bounds.bytes {
        isOver = true
      } else {
        end += count
        frames += 1
        isOver = frames == bounds.count
      }
    }
    return try put(records[..<end]) && !isOver
  }

  /// Writes bytes and counts them. Returns false if a signal arrived before all bytes were written.
  private func put(_ bytes: ArraySlice<UInt8>) throws(CommandError) -> Bool {
    self.bytes += UInt64(bytes.count)
    return try file.put(bytes, orStopAt: signals)
  }

  private func printCounts() {
    var text = "\(frames) frames captured"
    if dropped > 0 { text += ", \(dropped) more dropped: they arrived faster than they were read" }
    printError(text)
  }
}

/// The output of a capture.
private final class CaptureFile {
  let descriptor: CInt
  private let path: String?

  /// Creates the file at `path`, or truncates an existing file. If `path` is nil, the output is standard output.
  init(_ path: String?) throws(CommandError) {
    self.path = path
    guard let path else {
      descriptor = STDOUT_FILENO
      return
    }
    // Without O_NONBLOCK, open(2) on a named pipe blocks until a reader opens the pipe, and no signal ends the call.
    descriptor = csystem_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0o600)
    if descriptor < 0 {
      throw CommandError(saying: "\(path): \(SystemError.last.text); name another file with --output")
    }
  }

  deinit { if path != nil { close(descriptor) } }

  /// Writes bytes. Returns false if a signal arrived and the output is not writable.
  func put(_ bytes: ArraySlice<UInt8>, orStopAt signals: Signals) throws(CommandError) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      var polled = [
        pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0),
        pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0),
      ]
      poll(&polled, 2, -1)
      if polled[0].revents != 0 && polled[1].revents == 0 { return false }
      // A writable pipe accepts at least `writeBytes` bytes without blocking (POSIX, write: PIPE_BUF).
      let count = rest.prefix(Self.writeBytes).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
        continue
      }
      let error = SystemError.last
      if error.code == EAGAIN || error.code == EINTR { continue }
      if error.code == EPIPE { throw CommandError(ExitCode.failed) }
      throw CommandError(saying: "\(path ?? "standard output"): \(error.text); the capture ends here")
    }
    return true
  }

  private static let writeBytes = 4_096
}
