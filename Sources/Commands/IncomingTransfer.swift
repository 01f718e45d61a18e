import CSystem
import Diagnostics
import Messages
import Primitives
import Reactor

/// One incoming file: a .part file that is renamed at the end.
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

  /// Creates the unfinished file; false on failure, which the receiver then reports.
  mutating func open() -> Bool {
    descriptor = csystem_open(partPath, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    if descriptor < 0 { fail() }
    return descriptor >= 0
  }

  /// Carries out a command about the file.
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

  /// Writes all the data: after a short write the next one returns the error of a full disk. False with errno set.
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

  /// The transfer has ended.
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

  /// Removes the unfinished file.
  func discard() { if descriptor >= 0 { unlink(partPath) } }

  /// Renames the file to the first free one of: name, name-2, name-3 …
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
