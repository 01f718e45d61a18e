import Primitives

/// The sent messages whose delivery results are outstanding, and what each result changes.
struct UndeliveredMessages {
  /// The use of a delivery result.
  enum Purpose {
    case meet(SessionHandle, MemberAddress, number: UInt32, echo: UInt32)
    /// A table, a window or a stream message. If a message of this kind is lost, the two ends differ, so the handshake
    /// is restarted.
    case member(SessionHandle, MemberAddress, number: UInt32)
    case farewell(SessionHandle, MemberAddress)
    case message(SessionHandle, MemberAddress, number: UInt32, SessionMessageID)
    case streamEnd(SessionHandle, MemberAddress, number: UInt32, UInt32)
    case invitation(InvitationHandle)
    case answer(InvitationHandle)
    /// A message to a non-member. The delivery result of a message to a non-member changes nothing.
    case notice
  }

  private struct Entry {
    let tag: UInt64
    let purpose: Purpose
  }

  /// The memory of one entry, in bytes.
  static let entryBytes = MemoryLayout<Entry>.stride

  private var entries: [Entry] = []
  private var lastTag: UInt64 = 0

  /// Adds a message. Returns the tag by which its result will be reported.
  mutating func add(_ purpose: Purpose) -> UInt64 {
    lastTag += 1
    entries.append(Entry(tag: lastTag, purpose: purpose))
    return lastTag
  }

  /// Removes a message whose result was reported; nil if no message has this tag.
  mutating func remove(_ tag: UInt64) -> Purpose? {
    guard let index = entries.firstIndex(where: { $0.tag == tag }) else { return nil }
    return entries.remove(at: index).purpose
  }

  /// Removes the application's messages to a member. Returns their ids in the order of sending.
  mutating func removeMessages(of session: SessionHandle, to address: MemberAddress) -> [SessionMessageID] {
    var removed: [SessionMessageID] = []
    entries.removeAll { entry in
      guard case .message(session, address, number: _, let id) = entry.purpose else { return false }
      removed.append(id)
      return true
    }
    return removed
  }
}
