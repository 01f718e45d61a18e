import Primitives
import Testing

@Test func `every field is wide enough for its limit`() {
  var count = 0
  Limits.eachWidth { field, greatest, fits in
    #expect(greatest <= fits, "\(field): \(greatest) does not fit \(fits)")
    count += 1
  }
  #expect(count > 20)
  Limits.checkWidths()
}
