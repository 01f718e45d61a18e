import CSystem
import Diagnostics
import Messages
import Primitives
import Reactor

/// One file on its way in: a .part file that gets its name at the very end.
struct IncomingTransfer {
  let peer: NodeID
  let peerName: String
  let fileName: String
  var receiver: ResourceReceiver
  private let directory: String
  private var descriptor: CInt = -1
  private var progress: TransferProgress

  init(_ receiver: ResourceReceiver, _ peer: NodeID, name: String, directory: String) {
    self.receiver = receiver
    self.peer = peer
    peerName = name
    self.directory = directory
    fileName = String(decoding: receiver.safeName, as: UTF8.self)
    progress = TransferProgress("receiving \(fileName)", total: receiver.offer.size)
  }

  private var partPath: String { "\(directory)/\(fileName).\(peer.shortText)-\(receiver.offer.transfer).part" }

  /// Make the unfinished file; false when that fails, which the receiver then tells.
  mutating func open() -> Bool {
    descriptor = csystem_open(partPath, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    if descriptor < 0 { fail() }
    return descriptor >= 0
  }

  /// Carry out a command about the file.
  mutating func carryOut(_ command: ResourceReceiverCommand) {
    switch command {
    case .write(let offset, let data):
      if !put(data, at: off_t(offset)) { return fail() }
      progress.update(receiver.progress.done)
    case .computeDigest:
      guard let digest = digest(ofFile: descriptor) else { return fail() }
      receiver.digestComputed(digest)
    case .store: store()
    case .send, .finish: return
    }
  }

  /// Write it whole: what a full disk does not take shows in the write after a short one. False with errno set.
  private func put(_ data: [UInt8], at offset: off_t) -> Bool {
    var done = 0
    while done < data.count {
      let count = data.withUnsafeBytes {
        pwrite(descriptor, $0.baseAddress! + done, $0.count - done, offset + off_t(done))
      }
      if count < 0 && csystem_errno() != EINTR { return false }
      done += max(count, 0)
    }
    return true
  }

  /// The transfer is over.
  mutating func finished(_ outcome: ResourceOutcome) {
    progress.end()
    if outcome == .complete {
      let size = receiver.offer.size
      show("received ", "\(fileName) from \(peerName): \(size) bytes, \(progress.rate(size))/s, SHA-256 is right")
    } else {
      discard()
      printError("\(fileName) from \(peerName) not received: \(describe(outcome))")
    }
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  /// Remove the unfinished file.
  func discard() { if descriptor >= 0 { unlink(partPath) } }

  /// Give the file its name, or the first free one after it: name, name-2, name-3 …
  private mutating func store() {
    if fsync(descriptor) != 0 { return fail() }
    for number in 1...999 {
      let path = "\(directory)/\(fileName)" + (number == 1 ? "" : "-\(number)")
      if renameat2(AT_FDCWD, partPath, AT_FDCWD, path, UInt32(RENAME_NOREPLACE)) == 0 { return receiver.stored() }
      if csystem_errno() != EEXIST { return fail() }
    }
    fail()
  }

  private mutating func fail() {
    receiver.storageFailed(explanation: Array(SystemError.last.text.utf8))
  }
}
