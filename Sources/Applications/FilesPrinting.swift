import CommandLine
import LocalAPI
import Primitives
import Session
import Terminal
import Text
import Transfer
import TransferFiles

extension FilesView {
  /// Shows how many bytes of a download or of standard input have arrived. Such a source must be complete before it can
  /// be offered.
  func drawFetching(_ what: String, _ bytes: UInt64) {
    guard isProgressDue(console.now) else { return }
    if isJSON {
      var line = JSONLine(event: "fetching")
      line.add("what", Array(what.utf8))
      line.add("bytes", bytes)
      return line.put(on: console)
    }
    var text = TextBuilder("fetching: ")
    text.add(bytesText(bytes))
    draw(text)
  }

  func printQuestion(_ peer: LocalPeer, _ address: MemberAddress, _ manifest: Manifest) {
    if isJSON {
      var line = JSONLine(event: "asking")
      line.add("name", peer.name)
      line.add(address)
      line.add("verified", peer.isVerified)
      line.add("files", UInt64(manifest.files.count))
      line.add("bytes", manifest.byteCount)
      line.put(on: console)
      return
    }
    var text = TextBuilder()
    text.add(peer, address.node)
    text.add(" is asked to accept ")
    text.add(files: UInt64(manifest.files.count), bytes: manifest.byteCount)
    notice(text)
  }

  /// Shows the result that the receiver reported for one file.
  func printFile(_ path: [UInt8], _ size: UInt64, _ verdict: Verdict) {
    if isJSON {
      var line = JSONLine(event: "file")
      line.add("path", path)
      line.add("bytes", size)
      line.add("stored", verdict == .stored)
      return line.put(on: console)
    }
    if showsProgress && verdict == .stored { return }
    var text = TextBuilder(path, ", ")
    text.add(bytesText(size))
    switch verdict {
    case .stored: text.add(": stored")
    case .differs: text.add(": the received content differs from the sent one")
    case .notSent: text.add(": not sent")
    case .kept: text.add(": received, waits for the other files of its folder")
    }
    notice(text)
  }

  func printOffer(
    _ transfer: IncomingFiles, _ offer: OfferRecord, _ peer: LocalPeer, _ held: UInt64, _ free: UInt64
  ) {
    var line = JSONLine(event: "offer")
    line.add("name", peer.name)
    line.add(transfer.from)
    line.add("verified", peer.isVerified)
    line.add("first", offer.name)
    line.add("files", UInt64(offer.files))
    line.add("bytes", offer.bytes)
    line.add("held", held)
    line.add("free", free)
    line.put(on: console)
  }

  func printDeclined(_ peer: LocalPeer, _ from: MemberAddress, _ why: TextBuilder, _ lines: PeerLines) {
    var text = TextBuilder()
    text.add(peer, from.node)
    text.add(" was not accepted: ")
    text.add(why)
    guard lines.admits(text, .declined, of: from.node, peer) else { return }
    if isJSON {
      var line = JSONLine(event: "answer")
      line.add("name", peer.name)
      line.add("accepted", false)
      line.add("text", why.bytes)
      return line.put(on: console)
    }
    notice(text)
  }

  /// Shows files and folders that are complete and have received their final names.
  func printItems(_ transfer: IncomingFiles) {
    guard let manifest = transfer.work.receiver.manifest else { return }
    while transfer.toldItems < manifest.items.count, let path = transfer.work.path(item: transfer.toldItems) {
      transfer.toldItems += 1
      if isJSON {
        var line = JSONLine(event: "stored")
        line.add("name", transfer.name)
        line.add("path", Array(path.utf8))
        line.put(on: console)
        continue
      }
      var text = TextBuilder()
      text.add(untrusted: path.utf8)
      text.add(" from ")
      text.add(name: transfer.name)
      say(text)
    }
  }

  /// Shows the result of a transfer.
  func concluded(
    _ transfer: IncomingFiles, _ offer: OfferRecord, _ isReceived: Bool, _ peer: LocalPeer, _ lines: PeerLines
  ) {
    var text = TextBuilder(name: transfer.name, ": ")
    text.add(offer)
    switch transfer.outcome {
    case .complete(let verdicts)?:
      let missing = verdicts.count { $0 != .stored }
      text.add(isReceived ? " received" : " received incompletely; missing files: " as StaticString)
      if !isReceived { text.add(UInt64(missing)) }
    case .refused(let code)?:
      text.add(code == .timedOut ? " not answered in time" : " declined" as StaticString)
      text.add(words: transfer.words.bytes)
    case .cancelledHere?: text.add(" cancelled here; the received data is kept for 24 h")
    case .cancelledByPeer(_, let words)?:
      text.add(" cancelled by its sender")
      if transfer.isAccepted { text.add("; the received data is kept for 24 h") }
      text.add(words: words)
    case .storageFailed(let isFull, let words)?:
      text.add(" not stored: ")
      if isFull { text.add("the disk is full; the received data is kept for 24 h") } else { text.add(untrusted: words) }
    case .broken(let fault)?:
      text.add(" not received: its sender violated the protocol: ")
      text.add(fault.text)
    case nil where !transfer.isAccepted: text.add(" ended before it was answered")
    case nil: text.add(" not received: its sender did not return in time")
    }
    if !isReceived && !lines.admits(text, .ended, of: transfer.from.node, peer) { return }
    if isJSON {
      var line = JSONLine(event: isReceived ? "received" : "failed")
      line.add("name", transfer.name)
      line.add("files", UInt64(offer.files))
      line.add("bytes", offer.bytes)
      line.add("text", text.bytes)
      line.put(on: console)
    } else if isReceived {
      say(text)
    } else {
      notice(text)
    }
  }
}

extension IncomingFiles {
  /// Whether every file is stored.
  var isReceived: Bool {
    if case .complete(let verdicts)? = outcome { verdicts.allSatisfy { $0 == .stored } } else { false }
  }

  /// Whether the result is final and can be shown. The result of an offer that was not received is shown before the
  /// sender has the last records. Otherwise the next question would be shown first.
  var hasResult: Bool {
    switch phase {
    case .over: true
    case .ending: !isReceived
    case .opening, .asking, .waiting, .receiving, .away: false
    }
  }

  /// Whether --count includes this transfer. Offers that a person or a rule declined are not included.
  var counts: Bool {
    if case .refused(let code)? = outcome { code == .noSpace || code == .tooLarge } else { isAccepted }
  }
}

extension OutgoingWork {
  /// The way a transfer ended, as text for people, and the exit code of the command.
  func conclusion(_ outcome: SenderOutcome, to name: [UInt8]) -> (text: TextBuilder, code: CInt) {
    switch outcome {
    case .complete(let verdicts): return complete(verdicts, name)
    case .refused(let code, let words): return refused(code, words, name)
    case .cancelledHere:
      return (
        TextBuilder(name: name, " was notified of the cancellation; the same command resumes it within 24 h"),
        ExitCode.cut
      )
    case .cancelledByPeer(let code, let words): return cancelled(code, words, name)
    case .broken(let fault):
      var text = TextBuilder(name: name, " violated the protocol: ")
      text.add(fault.text)
      return (text, ExitCode.failed)
    }
  }

  private func complete(_ verdicts: [Verdict], _ name: [UInt8]) -> (text: TextBuilder, code: CInt) {
    guard let missing = verdicts.firstIndex(where: { $0 == .notSent || $0 == .differs }) else {
      var text = TextBuilder("sent ")
      text.add(files: UInt64(verdicts.count), bytes: sender.manifest.byteCount)
      text.add(" to ")
      text.add(name: name)
      return (text, ExitCode.done)
    }
    var text = TextBuilder()
    if let failure = failure {
      text.add(untrusted: failure)
    } else {
      text.add(untrusted: path(missing))
      text.add(" arrived with different content")
    }
    text.add("; files not stored: ")
    text.add(UInt64(verdicts.count { $0 != .stored }))
    text.add(" of ")
    text.add(UInt64(verdicts.count))
    return (text, ExitCode.failed)
  }

  private func refused(_ code: AnswerCode, _ words: [UInt8], _ name: [UInt8]) -> (text: TextBuilder, code: CInt) {
    let said: StaticString =
      switch code {
      case .noSpace: " has not enough space for it"
      case .tooLarge: " accepts no offer of this size"
      case .timedOut: " did not answer in time"
      case .busy: " is receiving it already"
      case .declined, .accepted, .acceptedAgain: " declined"
      }
    var text = TextBuilder(name: name, said)
    text.add(words: words)
    return (text, code == .timedOut ? ExitCode.timedOut : ExitCode.refused)
  }

  private func cancelled(_ code: CancelCode, _ words: [UInt8], _ name: [UInt8]) -> (text: TextBuilder, code: CInt) {
    let said: StaticString =
      switch code {
      case .wanted: " cancelled; the same command resumes it within 24 h"
      case .storageFailed: " cannot store it"
      case .storageFull: ": its disk is full; the same command resumes it within 24 h"
      case .broken: " reports that this end violated the protocol"
      }
    var text = TextBuilder(name: name, said)
    // The text for a full disk already states the reason, so omit the receiver's words.
    if code != .storageFull { text.add(words: words) }
    return (text, code == .wanted ? ExitCode.cut : ExitCode.failed)
  }
}

extension TextBuilder {
  /// Adds the description of an offer, for example: “photos” …, 40 files, 361 MB
  mutating func add(_ offer: OfferRecord) {
    add("“")
    add(untrusted: offer.name)
    add(offer.entries > 1 && offer.files > 1 ? "” …, " : "”, " as StaticString)
    add(files: UInt64(offer.files), bytes: offer.bytes)
  }
}

/// The question for an offer, for example: (NOT verified, e4654c9f) “dave” offers “photos” …, 40 files, 361 MB; 41 GB
/// free. Accept? [y/N]
func offerQuestion(_ offer: OfferRecord, _ peer: LocalPeer, _ node: NodeID, _ free: UInt64) -> TextBuilder {
  var text = TextBuilder()
  text.add(peer, node)
  text.add(" offers ")
  text.add(offer)
  text.add("; ")
  text.add(bytesText(free))
  text.add(" free. Accept? [y/N] ")
  return text
}
