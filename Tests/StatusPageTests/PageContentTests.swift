import StatusPage
import Testing

private func page(_ name: String = "attic", ssid: String = "DIRECT-cw-attic", peers: [String] = []) -> String {
  String(
    decoding: PageContent(name: name, id: "a11ce000000000010000000000000001", ssid: ssid, peers: peers).html(),
    as: UTF8.self)
}

@Test func `the page shows the box, its peers and how to join`() {
  let text = page(peers: ["bob", "carol"])
  for part in [
    "<title>attic – Causeway</title>", "<h1>attic</h1>", "<code>a11ce000000000010000000000000001</code>",
    "<dd id=\"network\">DIRECT-cw-attic</dd>", "<h2 id=\"count\">2 peers</h2>", "<li><bdi>bob</bdi></li>",
    "<li><bdi>carol</bdi></li>", "<code>causeway join</code>",
  ] { #expect(text.contains(part), "\(part)") }
  #expect(page(peers: ["bob"]).contains(">1 peer<"))
  #expect(page().contains("No peers yet."))
}

@Test func `the page contains no script and loads nothing`() {
  let text = page(peers: ["bob"])
  for part in ["<script", "http:", "https:", "src=", "@import", "url(", "<form", "<a "] {
    #expect(!text.contains(part), "\(part)")
  }
}

@Test func `a name cannot add markup`() {
  let hostile = #"<script>alert("x")</script>&amp;'"#
  let escaped = "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;&amp;amp;&#39;"
  let text = page(hostile, ssid: hostile, peers: [hostile])
  #expect(!text.contains("<script"))
  #expect(text.contains("<title>\(escaped) –") && text.contains("<h1>\(escaped)</h1>"))
  #expect(text.contains("<dd id=\"network\">\(escaped)</dd>") && text.contains("<bdi>\(escaped)</bdi>"))
}

@Test func `invisible characters of a name are shown as question marks`() {
  #expect(page(peers: ["b\u{202E}o\u{200B}b\u{7}"]).contains("<bdi>b?o?b?</bdi>"))
}

@Test func `names that do not fit are counted`() {
  let text = page(peers: (0..<(PageContent.namesMax + 3)).map { "peer\($0)" })
  #expect(text.contains(">\(PageContent.namesMax + 3) peers<") && text.contains("<p>And 3 others.</p>"))
  #expect(text.contains("<bdi>peer\(PageContent.namesMax - 1)<") && !text.contains("<bdi>peer\(PageContent.namesMax)<"))
  #expect(page(peers: [String](repeating: "a", count: PageContent.namesMax + 1)).contains("<p>And 1 other.</p>"))
}

@Test func `a page with the longest names is within the limit`() {
  let longest = String(repeating: "'", count: 63)
  let content = PageContent(
    name: longest, id: "a11ce000000000010000000000000001", ssid: String(repeating: "\"", count: 32),
    peers: [String](repeating: longest, count: 255))
  #expect(content.html().count <= PageContent.bytesMax)
}
