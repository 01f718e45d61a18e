import CMbedTLS
import CSystem
import FileSupport
import Testing

@testable import SecureTransport

/// The number of complete pages of a record buffer that are in memory. The buffer's first 64 bytes are not counted.
private func pagesInMemory(_ buffer: UnsafeMutablePointer<UInt8>) -> Int {
  let page = sysconf(CInt(_SC_PAGESIZE)), start = Int(bitPattern: buffer)
  let first = (start + 64 + page - 1) / page * page, end = (start + malloc_usable_size(buffer)) / page * page
  var states = [UInt8](repeating: 0, count: (end - first) / page)
  precondition(states.count > 2 && mincore(UnsafeMutableRawPointer(bitPattern: first), end - first, &states) == 0)
  return states.count { $0 & 1 != 0 }
}

@Test(arguments: [TLSVersion.tls12, .tls13])
func `a handshake leaves no pages of the record buffers in memory`(version: TLSVersion) throws {
  let pair = try Pair(version)
  pair.pump(splitMax: 40_000)
  for stream in [pair.client.stream, pair.server.stream] {
    #expect(stream.state == .established)
    #expect(pagesInMemory(stream.tls.pointee.private_in_buf) == 0)
    #expect(pagesInMemory(stream.tls.pointee.private_out_buf) == 0)
  }
}
