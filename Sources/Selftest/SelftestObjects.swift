/// Whether objects are freed with their last reference, and not before. The firmware counts references in
/// `Sources/CSystem/ReferenceCounts.c`, which depends on the compiler's object layout.
func objectsAreCounted() -> Bool {
  let ended = Counter()
  var held = made(4, ended)
  let kept = take(3, of: held)
  held += held
  guard ended.value == 0 else { return false }
  held.removeAll()
  return ended.value == 3 && kept.number == 3 && endsAlone(ended)
}

private final class Counter {
  var value = 0
}

private final class Counted {
  let number: Int
  private let ended: Counter
  init(_ number: Int, _ ended: Counter) {
    self.number = number
    self.ended = ended
  }
  deinit { ended.value += 1 }
}

// These functions are not inlined, because the compiler could otherwise remove an object or a reference.

@inline(never)
private func made(_ count: Int, _ ended: Counter) -> [Counted] { (0..<count).map { Counted($0, ended) } }

@inline(never)
private func take(_ index: Int, of objects: [Counted]) -> Counted { objects[index] }

/// Whether an object with two references lives until the second one is released.
@inline(never)
private func endsAlone(_ ended: Counter) -> Bool {
  let before = ended.value
  var references: [Counted?] = [made(1, ended)[0], nil]
  references[1] = references[0]
  references[0] = nil
  guard ended.value == before else { return false }
  references[1] = nil
  return ended.value == before + 1
}
