import CSystem
import Glibc
import Testing

/// Which kernel this is, on which the credits of a channel depend.
@Suite struct KernelVersionTests {
  /// What uname(2) says.
  private static var numbers: [UInt] {
    var names = utsname()
    uname(&names)
    let release = withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    return release.split { !$0.isNumber }.prefix(2).map { UInt($0)! }
  }

  @Test func `the kernel is of its own version and of those before`() throws {
    let (major, minor) = (Self.numbers[0], Self.numbers[1])
    #expect(csystem_kernel_is(major, minor) != 0)
    #expect(csystem_kernel_is(major - 1, minor + 100) != 0)
  }

  @Test func `the kernel is of no version behind its own`() throws {
    let (major, minor) = (Self.numbers[0], Self.numbers[1])
    #expect(csystem_kernel_is(major, minor + 1) == 0)
    #expect(csystem_kernel_is(major + 1, 0) == 0)
  }
}
