/// A fixed number of elements, stored in place.
///
/// This type replaces `InlineArray` wherever elements are changed individually. Swift 6.3.1 (`-O`) assumes that a
/// function which stores into an `InlineArray` at a variable index does not change the array's memory. The caller of a
/// function that stores at a variable index may then use outdated elements from before the call. `FixedArray` accesses
/// elements through spans, whose memory the optimiser assumes to change with any call. `Tests/OptimisedTests`
/// demonstrates the defect, and `make check` restricts `InlineArray` to bytes.
@frozen
public struct FixedArray<let count: Int, Element> {
  @usableFromInline var storage: InlineArray<count, Element>

  @inlinable public init(repeating element: Element) { storage = InlineArray(repeating: element) }

  @inlinable public var indices: Range<Int> { 0..<count }

  /// Traps when `index` is not in `indices`.
  @inlinable public subscript(index: Int) -> Element {
    // The element is read in place, because a getter often copies the complete array first.
    _read { yield storage.span[index] }
    _modify {
      var elements = storage.mutableSpan
      yield &elements[index]
    }
  }
}

extension FixedArray: Sendable where Element: Sendable {}
