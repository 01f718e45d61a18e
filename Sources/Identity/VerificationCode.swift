import CMbedTLS
import Primitives

/// The verification code of two nodes, which two people compare. The code is 6 groups of 5 digits from the SHA-256 over
/// a label and the two node ids, the lower id first. An id is a hash of the node's key, so equal codes mean the same
/// two keys. Each group is a big-endian number of 5 bytes, modulo 100000.
public func verificationCode(_ a: NodeID, _ b: NodeID) -> String {
  var input = Array("causeway-verify-1".utf8)
  for id in [min(a, b), max(a, b)] {
    for index in 0..<NodeID.byteCount { input.append(id.byte(index)) }
  }
  var digest = [UInt8](repeating: 0, count: 32)
  // Software SHA-256 over memory cannot fail.
  mbedtls_sha256(input, input.count, &digest, 0)
  var text = ""
  for group in 0..<6 {
    var value: UInt64 = 0
    for byte in digest[(group * 5)..<(group * 5 + 5)] { value = value << 8 | UInt64(byte) }
    var digits = ""
    for _ in 0..<5 {
      digits = "\(value % 10)" + digits
      value /= 10
    }
    text += group == 0 ? digits : " " + digits
  }
  return text
}
