/// The unread messages of ended sessions. Their buffer space is used until the application takes or discards them.
struct EndedUnread {
  private var entries: [(session: SessionHandle, owner: SessionOwner, unread: Unread)] = []

  /// Adds the unread messages of a session that has just ended.
  mutating func keep(_ unread: Unread, of session: SessionHandle, _ owner: SessionOwner) {
    if unread.bytes > 0 { entries.append((session, owner, unread)) }
  }

  /// Calls `body` for each ended session that has unread messages.
  func forEach(_ body: (Unread, SessionOwner) -> Void) {
    for entry in entries { body(entry.unread, entry.owner) }
  }

  /// Notes that the application took a message of `byteCount` bytes of an ended session.
  mutating func took(_ byteCount: Int, of session: SessionHandle) {
    guard let index = position(session) else { return }
    entries[index].unread.takes(byteCount)
    if entries[index].unread.bytes == 0 { entries.remove(at: index) }
  }

  /// Discards the unread messages of an ended session. If `byteCount` is given, one message of that size stays. Returns
  /// whether the session had unread messages.
  mutating func discard(_ session: SessionHandle, exceptMessageOf byteCount: Int?) -> Bool {
    guard let index = position(session) else { return false }
    let kept = byteCount.map { Credit.cost($0) } ?? 0
    if kept == 0 {
      entries.remove(at: index)
    } else if kept < entries[index].unread.bytes {
      entries[index].unread.bytes = kept
      entries[index].unread.share = min(entries[index].unread.share, kept)
    }
    return true
  }

  private func position(_ session: SessionHandle) -> Int? { entries.firstIndex { $0.session == session } }
}
