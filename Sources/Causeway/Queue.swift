import Synchronization

/// A FIFO queue. Positions are counted from the first element that was ever appended.
struct Queue<Element> {
  private var elements: [Element] = []
  private var head = 0
  private var removed = 0

  var isEmpty: Bool { head == elements.count }
  var count: Int { elements.count - head }
  /// The position of the first element.
  var start: Int { removed }
  /// The position of the next element to be appended.
  var end: Int { removed + count }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func removeFirst() -> Element? {
    guard head < elements.count else { return nil }
    let element = elements[head]
    head += 1
    removed += 1
    if head == elements.count {
      elements = []
      head = 0
    } else if head >= 64 && head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  /// The element at a position, or nil if it was removed.
  subscript(position: Int) -> Element? {
    get { position >= removed && position < end ? elements[head + position - removed] : nil }
    set { if position >= removed, position < end, let newValue { elements[head + position - removed] = newValue } }
  }

  mutating func removeAll(where isGone: (Element) -> Bool) {
    elements = elements[head...].filter { !isGone($0) }
    head = 0
  }
}

extension Queue: Sendable where Element: Sendable {}

/// A flag that can be closed once.
final class Latch: Sendable {
  private let isClosed = Atomic(false)

  /// Closes the latch. Returns true only the first time.
  func close() -> Bool { !isClosed.exchange(true, ordering: .acquiringAndReleasing) }
  var isOpen: Bool { !isClosed.load(ordering: .acquiring) }
}
