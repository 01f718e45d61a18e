import Primitives

/// The content of the status page. The content includes no secrets, because every device in the Wi-Fi group can read
/// the page.
public struct PageContent {
  /// The box's display name.
  public var name: String
  /// The box's node id: the fingerprint of its key.
  public var id: String
  /// The name of the Wi-Fi group.
  public var ssid: String
  /// The display names of all peers. The names are untrusted, because each peer chooses its own name.
  public var peers: [String]

  public init(name: String, id: String, ssid: String, peers: [String]) {
    self.name = name
    self.id = id
    self.ssid = ssid
    self.peers = peers
  }

  /// The maximum number of peers whose names are on the page. The page shows only the number of further peers.
  public static let namesMax = 64
  /// The maximum length of an untrusted text (a display name), in bytes.
  static let nameBytesMax = 63
  /// The maximum length of the page in bytes. Escaping can turn each byte of a name into five.
  public static let bytesMax = namesMax * (5 * nameBytesMax + 32) + 6_144

  /// The page as HTML in UTF-8, with an inline style sheet and no script.
  public func html() -> [UInt8] {
    var text = PageText()
    text.add("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n")
    text.add("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
    // Without an inline icon, browsers request /favicon.ico.
    text.add("<link rel=\"icon\" href=\"data:,\">\n<title>")
    text.add(untrusted: name)
    text.add(" – Causeway</title>\n<style>\n")
    text.add(style)
    text.add("</style></head><body><main>\n<h1>")
    text.add(untrusted: name)
    text.add("</h1>\n<p>A Causeway box: devices nearby that share no radio reach each other through it.</p>\n<dl>\n")
    text.add("<dt>Fingerprint</dt><dd id=\"fingerprint\"><code>")
    text.add(untrusted: id)
    text.add("</code></dd>\n<dt>Wi-Fi network</dt><dd id=\"network\">")
    text.add(untrusted: ssid)
    text.add("</dd>\n</dl>\n<h2 id=\"count\">")
    text.add(count: peers.count, "peer", "peers")
    text.add("</h2>\n")
    addPeers(to: &text)
    text.add("<h2>How to join</h2>\n<ol>\n<li>Join the Wi-Fi network <b>")
    text.add(untrusted: ssid)
    text.add(
      """
      </b>. The operator of the box has its passphrase, and a code for a phone's camera: <code>causeway join</code>. If \
      a phone reports that the network has no Internet, stay in it.</li>
      <li>Start an application that uses Causeway. It finds the box automatically.</li>
      <li>Compare the fingerprint that it shows with the one of <code>causeway join</code>. This page proves nothing: \
      anybody in the network could have sent it.</li>
      </ol>
      </main></body></html>

      """)
    return text.bytes
  }

  private func addPeers(to text: inout PageText) {
    if peers.isEmpty {
      text.add("<p>No peers yet.</p>\n")
      return
    }
    text.add("<ul id=\"peers\">\n")
    for peer in peers.prefix(Self.namesMax) {
      // `<bdi>` isolates right-to-left names, so that these names do not reorder the surrounding text.
      text.add("<li><bdi>")
      text.add(untrusted: peer)
      text.add("</bdi></li>\n")
    }
    text.add("</ul>\n")
    if peers.count > Self.namesMax {
      text.add("<p>And ")
      text.add(count: peers.count - Self.namesMax, "other", "others")
      text.add(".</p>\n")
    }
  }
}

private let style: StaticString = """
  :root{color-scheme:light dark}
  body{margin:0;font:1rem/1.5 system-ui,sans-serif}
  main{max-width:40rem;margin:0 auto;padding:1rem}
  h1,h2,dd,li{overflow-wrap:anywhere}
  h1{font-size:1.6rem;margin:.5rem 0}
  h2{font-size:1.15rem;margin:1.5rem 0 .5rem}
  dt{font-size:.85rem;opacity:.75}
  dd{margin:0 0 .5rem}
  code{font-size:.95em}
  ul,ol{margin:0;padding-left:1.4rem}

  """

/// The text of a page or of a response head, in UTF-8.
struct PageText {
  var bytes: [UInt8] = []

  mutating func add(_ markup: StaticString) { markup.withUTF8Buffer { bytes.append(contentsOf: $0) } }

  mutating func add(_ number: Int) { bytes += String(number).utf8 }

  mutating func add(count: Int, _ one: StaticString, _ many: StaticString) {
    add(count)
    add(" ")
    add(count == 1 ? one : many)
  }

  /// Appends untrusted text. Markup characters are escaped, and invisible characters become “?”.
  mutating func add(untrusted text: String) {
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x26: add("&amp;")
      case 0x3C: add("&lt;")
      case 0x3E: add("&gt;")
      case 0x22: add("&#34;")
      case 0x27: add("&#39;")
      case let value where isInvisible(value): bytes.append(UInt8(ascii: "?"))
      default: if let encoded = UTF8.encode(scalar) { bytes += encoded }
      }
    }
  }
}
