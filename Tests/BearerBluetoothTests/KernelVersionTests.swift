import CSystem
import Glibc
import Testing

/// The check of the kernel version. From Linux 6.9 on, the credits that an L2CAP channel grants follow its receive
/// buffer.
@Suite struct KernelVersionTests {
  /// Major and minor version from uname(2).
  private static var numbers: [UInt] {
    var names = utsname()
    uname(&names)
    let release = withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    return release.split { !$0.isNumber }.prefix(2).map { UInt($0)! }
  }

  @Test func `a version check passes for the running kernel and for older versions`() throws {
    let (major, minor) = (Self.numbers[0], Self.numbers[1])
    #expect(csystem_kernel_is(major, minor) != 0)
    #expect(csystem_kernel_is(major - 1, minor + 100) != 0)
  }

  @Test func `a version check fails for newer versions`() throws {
    let (major, minor) = (Self.numbers[0], Self.numbers[1])
    #expect(csystem_kernel_is(major, minor + 1) == 0)
    #expect(csystem_kernel_is(major + 1, 0) == 0)
  }
}
