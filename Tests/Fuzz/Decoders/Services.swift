import Bearer
import CAvahi
import CSystem
import FuzzSupport
@testable import Discovery

/// Decodes any bytes as the parts of a DNS-SD announcement: a TXT record (RFC 6763, section 6), an instance name, and
/// an address to dial. Also screens the bytes as a packet for the built-in responder.
func fuzzServices(_ input: UnsafeRawBufferPointer) {
  if input.isEmpty { return }
  let bytes = Array(input)
  if PacketScreen.admits(input) {
    var shares = RecordShares(seed: 1)
    for source in 1...2 as ClosedRange<UInt64> { _ = shares.admits(input, from: source, on: 2, now: .zero) }
  }
  _ = NodeHint.ofInstanceName(bytes)
  let hint = NodeHint.ofTXTString(bytes)
  var list: UnsafeMutablePointer<AvahiStringList>?
  if avahi_string_list_parse(input.baseAddress, input.count, &list) == 0 {
    _ = NodeRecord(list)
    avahi_string_list_free(list)
  }
  list = avahi_string_list_add_arbitrary(nil, input.baseAddress?.assumingMemoryBound(to: UInt8.self), input.count)
  expect(NodeRecord(list).hint == hint, "a string read otherwise in a record")
  avahi_string_list_free(list)
  lookUp(Script(input))
  name(bytes)
}

/// Adds names in the form of C strings until the table of names is full.
private func name(_ bytes: [UInt8]) {
  let table = ServiceTable()
  for part in bytes.split(separator: 0) {
    let text = part.map { CChar(bitPattern: $0) } + [0]
    guard let key = serviceKey(1, 0, text) else { continue }
    expect(nameCString(key) == text, "a name is written otherwise than it was read")
    if table.find(key) == nil { _ = table.insert(key, evicting: { _ in }) }
    expect(table.services.count <= ServiceTable.servicesMax, "\(table.services.count) services")
  }
}

private func lookUp(_ script: consuming Script) {
  while !script.isOver {
    var address = AvahiAddress()
    address.proto = script.u8() & 1 == 0 ? CInt(AVAHI_PROTO_INET) : CInt(AVAHI_PROTO_INET6)
    let port = script.u16()
    withUnsafeMutableBytes(of: &address.data) { $0.copyBytes(from: script.bytes(min(16, $0.count))) }
    guard let found = endpoint(&address, port, on: 2) else { continue }
    expect(found.port != 0 && found.isUnicast, "an endpoint that nobody can dial")
    expect(found.scope == (found.isLinkLocal ? 2 : 0), "the wrong interface")
  }
}
