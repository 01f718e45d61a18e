import Testing

@testable import Simulator

/// Prints the cost of small networks at rest. docs/measurements/figures.md has the figures of large networks.
@Test(arguments: [Rest.ofMesh, Rest.ofHall]) func `the cost of a network at rest is measured`(
  kind: @Sendable (Int) -> Rest
) {
  let rest = kind(16)
  print(rest.line)
  #expect(rest.wholeAfter != nil && rest.violation == nil)
}
