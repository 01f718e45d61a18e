import CAvahi

/// The claims of a node in the TXT record of its service. Unknown strings of the record are ignored.
struct NodeRecord: Equatable {
  /// The first 8 bytes of the node's id.
  var hint: UInt64?
  /// Whether the node forwards for others; false for `relay=no`.
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
        // Only the first string with a key is valid (RFC 6763, section 6.4).
        saysRelay = saysRelay ?? Self.relays(bytes)
      }
      next = avahi_string_list_get_next(string)
      left -= 1
    }
    relays = saysRelay ?? true
  }

  /// Whether a string with the key `relay` claims that the node forwards. nil for a string with another key. Keys are
  /// case-insensitive.
  private static func relays(_ string: [UInt8]) -> Bool? {
    let key = Array("relay=".utf8)
    guard string.count >= key.count else { return nil }
    for index in key.indices where string[index] != key[index] && string[index] | 0x20 != key[index] { return nil }
    return string[key.count...] != [0x6E, 0x6F]  // "no"
  }
}
