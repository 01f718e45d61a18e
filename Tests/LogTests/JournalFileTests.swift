import CSystem
import Journal
import Log
import Primitives
import Testing
import Text

@Suite(.serialized) struct JournalFileTests {
  let directory = TemporaryDirectory()
  var path: String { directory.path + "/journal" }

  @Test func `the journal outlives its writer`() throws {
    do {
      let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
      file.journal.record(.notice, .boxStarted, at: .zero, 41820)
    }
    #expect(try JournalMapping(path: path).record(1)?.a == 41820)
    let again = try openAgain(sizeKiB: 16)
    again.journal.record(.notice, .boxStarted, at: .zero, 2)
    #expect(try JournalMapping(path: path).newest == 2)
  }

  /// Opens the journal after its previous writer has closed it. A process that another test is starting may hold the
  /// lock for a moment: the child of a fork has all descriptors until it runs its program.
  private func openAgain(sizeKiB: Int) throws -> JournalFile {
    for _ in 0..<200 {
      if let file = try? JournalFile(path: path, sizeKiB: sizeKiB, level: .info) { return file }
      usleep(10_000)
    }
    return try JournalFile(path: path, sizeKiB: sizeKiB, level: .info)
  }

  @Test func `another size creates a new file, and a reader of the old file keeps it`() throws {
    let first = try JournalFile(path: path, sizeKiB: 16, level: .info)
    first.journal.record(.notice, .boxStarted, at: .zero, 1)
    let mapping = try JournalMapping(path: path)
    #expect(!mapping.isReplaced(at: path))
    withExtendedLifetime(first) {}
    _ = consume first
    let second = try openAgain(sizeKiB: 32)
    #expect(mapping.isReplaced(at: path))
    #expect(mapping.record(1)?.a == 1)
    #expect(try JournalMapping(path: path).newest == 0)
    withExtendedLifetime(second) {}
  }

  @Test func `a second writer is refused`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    #expect(throws: AccessError.self) { try JournalFile(path: path, sizeKiB: 16, level: .info) }
    withExtendedLifetime(file) {}
  }

  @Test func `a file that is truncated while in use is created again`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    file.journal.record(.notice, .boxStarted, at: .zero, 1)
    let before = try JournalMapping(path: path)
    #expect(truncate(path, 0) == 0)
    #expect(before.record(1) == nil, "who reads does not die of it")
    file.journal.record(.notice, .boxStarted, at: .zero, 2)
    file.restore(at: .zero)
    #expect(file.problem == nil && before.isReplaced(at: path))
    let after = try JournalMapping(path: path)
    #expect(
      after.record(1)?.a == 2 && after.record(2)?.event == Event.journalRestored.rawValue && after.record(2)?.a == 1)
    file.journal.record(.notice, .boxStarted, at: .zero, 3)
    #expect(after.record(3)?.a == 3)
  }

  @Test func `a removed file is created again with its former content`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    file.journal.record(.notice, .boxStarted, at: .zero, 1)
    file.restore(at: .zero)
    #expect(try JournalMapping(path: path).newest == 1)
    unlink(path)
    rmdir(directory.path)
    file.restore(at: .zero)
    let after = try JournalMapping(path: path)
    #expect(
      after.record(1)?.a == 1 && after.record(2)?.event == Event.journalRestored.rawValue && after.record(2)?.a == 0)
    #expect(throws: AccessError.self) { try JournalFile(path: path, sizeKiB: 16, level: .info) }
  }

  @Test func `a count of repeats is shown with the text of its event`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    for number in 0..<12 {
      file.journal.record(.info, .frameRefused, at: .zero, link: 3, 200, UInt64(number), node: bobID)
    }
    for number in 0..<12 { file.journal.report(.notice, at: .zero, "link", "10.0.0.9:\(number): no TLS") }
    file.journal.recordRepeats(at: .zero, isLast: true)
    let reader = try JournalMapping(path: path)
    let lines = LogQuery().sequences(in: reader).suffix(2).map {
      String(decoding: EventFormatter.line($0, of: reader)?.bytes ?? [], as: UTF8.self).dropFirst(25)
    }
    #expect(
      lines == [
        "info    link 3: 4 more in 0 s: frame from b0b00000… refused: …\n",
        "notice  4 more in 0 s: link: 10.0.0.9:0…\n",
      ])
  }

  private func lines(_ names: (JournalMapping) -> JournalNames = { JournalNames($0) }) throws -> [String] {
    let reader = try JournalMapping(path: path)
    return LogQuery().sequences(in: reader).map {
      String(decoding: EventFormatter.line($0, of: reader, names: names(reader))?.bytes ?? [], as: UTF8.self)
        .dropFirst(33).description
    }
  }

  private func name(_ node: NodeID, _ name: String, _ journal: Journal) {
    var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
    withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: Array(name.utf8)) }
    journal.record(.notice, .peerNamed, at: .zero, words.0, words.1, words.2, node: node)
  }

  @Test func `a node's name follows its id, before it was recorded and after the node left`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    file.journal.record(.notice, .linkUp, at: .zero, link: 3, 3, 1, 4096, node: bobID)
    name(bobID, "bob", file.journal)
    file.journal.record(.notice, .peerAppeared, at: .zero, 1, 3, node: bobID)
    file.journal.record(.notice, .peerVanished, at: .zero, node: bobID)
    file.journal.record(.notice, .peerVanished, at: .zero, node: aliceID)
    #expect(
      try lines() == [
        "link 3: up over wifi-direct with b0b00000… (bob): capabilities 0x0001, frames up to 4096 bytes\n",
        "peer b0b00000… (bob) appeared: 1 hops over wifi-direct\n", "peer b0b00000… (bob) vanished\n",
        "peer a11ce000… vanished\n",
      ])
  }

  @Test func `the last name of a node is shown, and cannot control the terminal`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    name(bobID, "bobby", file.journal)
    name(bobID, "b\u{1B}ob", file.journal)
    file.journal.record(.notice, .peerVanished, at: .zero, node: bobID)
    #expect(try lines() == ["peer b0b00000… (b?ob) vanished\n"])
  }

  @Test func `records of names and their counts are not shown as lines`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    for _ in 0..<12 { name(bobID, "bob", file.journal) }
    file.journal.recordRepeats(at: .zero, isLast: true)
    #expect(try JournalMapping(path: path).newest == 9 && lines() == [])
  }

  @Test func `a file that is no journal is reported with the reason`() throws {
    func text(_ content: String) -> String? {
      let file = fopen(directory.path + "/other", "w")
      fputs(content, file)
      fclose(file)
      do throws(AccessError) { _ = try JournalMapping(path: directory.path + "/other") } catch {
        return error.text
      }
      return nil
    }
    #expect(text("")?.contains("empty") == true)
    #expect(text("hello")?.contains("shorter") == true)
    #expect(text(String(repeating: "hello", count: 2000))?.contains("not a Causeway journal") == true)
    do throws(AccessError) {
      _ = try JournalMapping(path: "/nonexistent/journal")
    } catch { #expect(error.text.contains("has “causeway run” been started")) }
  }

  @Test func `a text from other nodes that spans several records is shown completely`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    // The filler moves the split of the text into records: inside a character, or between two characters.
    for filler in 0..<4 {
      let text = String(repeating: "-", count: filler) + String(repeating: "ö\u{202E}", count: 12)
      file.journal.report(.notice, at: .zero, "link", text)
      let mapping = try JournalMapping(path: path)
      let sequence = try #require((1...mapping.newest).last { mapping.record($0)?.event != Event.textMore.rawValue })
      let line = try #require(EventFormatter.line(sequence, of: mapping))
      let shown = String(repeating: "-", count: filler) + String(repeating: "ö?", count: 12)
      #expect(String(decoding: line.bytes, as: UTF8.self).hasSuffix("link: \(shown)\n"))
    }
  }

  @Test func `a panic message is read back completely`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    let message: StaticString = "the number of the counting shall be three, and three the number"
    message.withUTF8Buffer { file.journal.recordText(.fault, .panic, at: .zero, UnsafeRawBufferPointer($0)) }
    let reader = try JournalMapping(path: path)
    #expect(reader.newest == 2)
    let line = String(decoding: try #require(EventFormatter.line(1, of: reader)).bytes, as: UTF8.self)
    #expect(line.hasSuffix(" fault   panic: \(message)\n"))
    #expect(EventFormatter.line(2, of: reader) == nil)
  }

  @Test func `a report is shown on one line of limited length`() throws {
    let file = try JournalFile(path: path, sizeKiB: 16, level: .info)
    file.journal.report(.warning, at: .zero, "bluetooth", "no adapter")
    file.journal.report(.warning, at: .zero, "bluetooth", String(repeating: "é\n", count: 500))
    file.journal.report(.warning, at: .zero, "x", "")
    let reader = try JournalMapping(path: path)
    let lines = LogQuery().sequences(in: reader).map {
      String(decoding: EventFormatter.line($0, of: reader)?.bytes ?? [], as: UTF8.self)
    }
    #expect(lines.count == 3)
    #expect(lines[0].hasSuffix("warning bluetooth: no adapter\n"))
    #expect(lines[1].hasPrefix(String(lines[0].prefix(24))) && lines[1].utf8.count < 400 && lines[1].contains("é?é?"))
    #expect(lines[2].hasSuffix("warning x: \n"))
  }
}
