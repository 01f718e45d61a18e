import CAvahi

/// What the TXT record of a node's service claims. Unknown strings are ignored.
struct NodeRecord: Equatable {
  /// The first 8 bytes of its id.
  var hint: UInt64?
  /// False when it says `relay=no`.
  var relays = true

  init(hint: UInt64? = nil) { self.hint = hint }

  init(_ list: UnsafeMutablePointer<AvahiStringList>?) {
    var next = list
    var left = DiscoverySettings.txtStringsMax
    var saysRelay: Bool?
    while let string = next, left > 0 {
      let text = UnsafeBufferPointer(
        start: avahi_string_list_get_text(string), count: avahi_string_list_get_size(string))
      if text.count <= DiscoverySettings.txtStringBytesMax {
        let bytes = Array(text)
        hint = hint ?? NodeHint.ofTXTString(bytes)
        // The first one counts (RFC 6763, section 6.4).
        saysRelay = saysRelay ?? Self.relays(bytes)
      }
      next = avahi_string_list_get_next(string)
      left -= 1
    }
    relays = saysRelay ?? true
  }

  /// What a string with the key `relay` says; nil for any other. Keys are case-insensitive.
  private static func relays(_ string: [UInt8]) -> Bool? {
    let key = Array("relay=".utf8)
    guard string.count >= key.count else { return nil }
    for index in key.indices where string[index] != key[index] && string[index] | 0x20 != key[index] { return nil }
    return string[key.count...] != [0x6E, 0x6F]  // "no"
  }
}
