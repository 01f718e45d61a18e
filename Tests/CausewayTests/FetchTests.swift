import Testing
@testable import TransferFiles

@Test func `an argument that begins with http:// or https:// is a URL, and any other is a path`() {
  for url in ["http://a/b", "https://a", "HTTP://a", "HttpS://a/b?c"] { #expect(Fetch.isURL(url), "\(url)") }
  for path in ["", "a", "http", "http:/a", "https:a", "ftp://a/b", "file:///etc/passwd", "./http://a", " http://a"] {
    #expect(!Fetch.isURL(path), "\(path)")
  }
}

@Test func `the file name is the last part of the URL's path if it is legal`() {
  let names = [
    ("https://host/a/b.iso", "b.iso"), ("https://host/b.iso?x=/y#z", "b.iso"),
    ("http://host/b%C3%BCcher.pdf", "bücher.pdf"),
    ("http://host/%", "%"), ("http://host/50%25", "50%"), ("http://host/", "download"), ("http://host", "download"),
    ("http://host/..", "download"), ("http://host/%2e%2e", "download"), ("http://host/a%2Fb", "download"),
    ("http://host/a%00b", "download"), ("http://host/a%0Ab", "download"), ("http://host/%FF", "download"),
    ("http://host/a//", "download"),
  ]
  for (url, name) in names { #expect(String(decoding: Fetch.name(url), as: UTF8.self) == name, "\(url)") }
}

@Test func `a URL that is too long or contains blanks is not requested`() {
  for url in [
    "http://127.0.0.1:9/a b", "http://127.0.0.1:9/a\n", "http://127.0.0.1:9/" + String(repeating: "a", count: 8_192),
  ] {
    do throws(ResourceError) {
      _ = try ResourceSource(fetching: [url])
      Issue.record("it was taken")
    } catch {
      #expect(error.reason == .invalid && error.text.contains("8192 bytes"))
    }
  }
}

@Test func `a URL with a password is not requested, and the error does not contain it`() {
  for url in [
    "http://anna:secret@127.0.0.1:9/a", "http://secret@127.0.0.1:9", "https://a:secret@b@127.0.0.1:9/?@",
    "http://anna:secret@127.0.0.1:9/a b", "http://anna:secret@127.0.0.1:9/" + String(repeating: "a", count: 8_192),
  ] {
    do throws(ResourceError) {
      _ = try ResourceSource(fetching: [url])
      Issue.record("it was taken")
    } catch {
      #expect(error.reason == .invalid && error.text.contains(".netrc") && !error.text.contains("secret"))
    }
  }
}

@Test func `the error of a missing spool directory contains its path`() {
  do throws(ResourceError) {
    _ = try ResourceSource(fetching: ["http://127.0.0.1:9/a"], spool: "/nonexistent")
    Issue.record("it was taken")
  } catch {
    #expect(error.reason == .storage && error.text.contains("/nonexistent"))
  }
}
