import CMbedTLS
import CSystem
import Messages

/// SHA-256 of a whole file, read from its start; nil with errno set when it cannot be read.
func digest(ofFile descriptor: CInt) -> ResourceDigest? {
  var context = mbedtls_sha256_context()
  mbedtls_sha256_init(&context)
  defer { mbedtls_sha256_free(&context) }
  mbedtls_sha256_starts(&context, 0)
  var chunk = [UInt8](repeating: 0, count: 65_536)
  var offset: off_t = 0
  while true {
    let count = chunk.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, offset) }
    if count < 0 { return nil }
    if count == 0 { break }
    mbedtls_sha256_update(&context, chunk, count)
    offset += count
  }
  var hash = [UInt8](repeating: 0, count: ResourceDigest.byteCount)
  mbedtls_sha256_finish(&context, &hash)
  return ResourceDigest(hash.span.bytes)
}
