import CSystem

/// Fills the buffer from the kernel's random generator. Blocks until the generator has been seeded after boot
/// (getrandom(2) without GRND_NONBLOCK), because no key may be created earlier.
public func secureRandom(into buffer: UnsafeMutableRawBufferPointer) throws(IdentityError) {
  var done = 0
  while done < buffer.count {
    let n = getrandom(buffer.baseAddress! + done, buffer.count - done, 0)
    if n > 0 {
      done += n
    } else if csystem_errno() != EINTR {
      throw .noRandomness(code: csystem_errno())
    }
  }
}
