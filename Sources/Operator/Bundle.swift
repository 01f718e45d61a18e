import CSystem
import CommandLine
import Configuration
import ControlSocket
import Doctor
import Identity
import Log
import Reactor
import Relay
import Status
import Text

/// The parts of a bug report. Each text is redacted before it is kept. Parts that cannot be read are listed.
final class Bundle {
  /// The maximum size of a part in bytes. From a longer journal the newest records are kept, from any other text the
  /// beginning. The sum of all parts is below `Archive.bytesMax`.
  private static let partBytesMax = 640 << 10

  /// The parts that could not be collected, and why. These texts are not redacted yet.
  private(set) var missing: [String] = []
  var partCount: Int { parts.count }

  private let options: ClientOptions
  private var redaction: Redaction
  private var parts: [(name: String, text: [UInt8])] = []
  private var configuration = Configuration()

  init(_ options: ClientOptions, keepsIdentities: Bool) {
    self.options = options
    redaction = Redaction(keepsIdentities: keepsIdentities)
  }

  func collect() {
    // The configuration is read first, because it contains the secrets to redact from the other parts.
    addConfiguration()
    add("version.txt", versionText.bytes)
    addStatus()
    addDoctor()
    addJournal()
    addSystem()
    addKernelLog()
    add("limits.txt", Ledger.text.bytes)
  }

  func archive(named name: String, seconds: UInt64) -> TextBuilder {
    var archive = Archive(folder: name, seconds: seconds)
    for part in [(name: "README.txt", text: readme)] + parts where !archive.add(part.name, part.text) {
      missing.append("\(part.name): no room in the archive")
    }
    var text = TextBuilder()
    for byte in archive.bytes { text.add(byte: byte) }
    return text
  }

  private var readme: [UInt8] {
    var text = TextBuilder()
    text.add("A bug report by “causeway bundle”, version \(causewayVersion).\n\nSecrets are masked by “***”. ")
    text.add(
      redaction.keepsIdentities
        ? "Names, ids and addresses are not masked.\n"
        : "Names are replaced by “peer-” and the first digits of the id,\nids are shortened, and addresses end with “x”.\n"
    )
    if !missing.isEmpty { text.add("\nMissing:\n") }
    for line in missing { text.add("  \(redaction.applied(to: line))\n") }
    return text.bytes
  }

  /// Adds a text that is already redacted.
  private func add(_ name: String, _ text: [UInt8]) {
    let isCut = text.count > Self.partBytesMax
    parts.append((name, isCut ? text.prefix(Self.partBytesMax) + Array("\n(truncated)\n".utf8) : text))
  }

  private func miss(_ name: String, _ reason: String) {
    missing.append("\(name): \(reason)")
  }

  // MARK: Parts

  private func addConfiguration() {
    let path = options.config ?? Configuration.defaultPath
    do throws(ConfigurationError) {
      guard let file = try Configuration.read(path, mayBeAbsent: options.config == nil) else {
        return add("configuration.txt", Array("; no file: the defaults apply\n".utf8))
      }
      let excerpt = ConfigurationExcerpt(of: file, keepsIdentities: redaction.keepsIdentities)
      for secret in excerpt.secrets { redaction.add(secret: secret) }
      add("configuration.txt", redaction.applied(to: excerpt.text))
      configuration = try Configuration.parse(file, file: path)
    } catch {
      miss("configuration", error.text)
    }
  }

  private func addStatus() {
    do throws(AccessError) {
      let path = options.socket ?? configuration.controlSocketPath
      let report = try StatusReport(ControlClient(path: path).status())
      defer { report.release() }
      report.redact(redaction)
      add("status.json", report.json())
      add("status.txt", report.text().bytes)
    } catch {
      return miss("status, sessions, routes", error.text)
    }
    do throws(CommandError) {
      let text = try routesText(PeerConnection(options), hasNames: redaction.keepsIdentities)
      add("routes.txt", redaction.applied(to: text.bytes))
    } catch {
      error.report()
      miss("routes", "no answer from the daemon")
    }
    addSessions()
  }

  private func addSessions() {
    let json: [UInt8]
    do throws(CommandError) {
      json = try fetch(options.connect(), .applications)
    } catch {
      error.report()
      return miss("sessions", "no answer from the daemon")
    }
    guard let report = try? SessionsReport(json) else { return miss("sessions", "no answer from the daemon") }
    defer { report.release() }
    add("sessions.txt", redaction.applied(to: report.text(hasNames: redaction.keepsIdentities).bytes))
  }

  private func addDoctor() {
    var text = TextBuilder()
    for finding in doctorFindings(options) {
      // Redact the text before its lines are wrapped, because a line break could split a secret.
      text.add(
        FindingView.text(
          Finding(
            finding.check, finding.state, redaction.applied(to: finding.text),
            remedy: redaction.applied(to: finding.remedy))))
    }
    add("doctor.txt", text.bytes)
  }

  private func addJournal() {
    do throws(AccessError) {
      let journal = try JournalMapping(path: configuration.journalPath)
      var lines: [[UInt8]] = [], count = 0
      for sequence in LogQuery().sequences(in: journal).reversed() {
        guard let line = EventFormatter.line(sequence, of: journal) else { continue }
        let text = redaction.applied(to: line.bytes)
        count += text.count
        if count > Self.partBytesMax { break }
        lines.append(text)
      }
      add("journal.txt", lines.reversed().flatMap { $0 })
    } catch {
      miss("journal", error.text)
    }
  }

  private func addSystem() {
    var text = TextBuilder()
    for path in ["/proc/version", "/etc/os-release", "/proc/device-tree/model", "/proc/uptime", "/proc/loadavg"] {
      guard let bytes = try? readFile(path, bytesMax: 4096) else { continue }
      text.add("\(path)\n")
      text.add(untrustedLines: redaction.applied(to: bytes))
      text.add("\n")
    }
    if let bytes = try? readFile("/proc/meminfo", bytesMax: 4096) {
      text.add("/proc/meminfo\n")
      text.add(untrustedLines: bytes.split(separator: 0x0A).prefix(3).flatMap { $0 + [0x0A] })
    }
    add("system.txt", text.bytes)
  }

  /// Adds the kernel's messages about radios.
  private func addKernelLog() {
    let all = klogctl(kernelLogSize, nil, 0)
    var bytes = [CChar](repeating: 0, count: Int(min(max(all, 0), 1 << 20)))
    let count = klogctl(kernelLogReadAll, &bytes, CInt(bytes.count))
    guard count >= 0 else { return miss("kernel log", "\(SystemError.last.text); run as root to include it") }
    var text = TextBuilder()
    for line in bytes[..<Int(count)].map({ UInt8(bitPattern: $0) }).split(separator: 0x0A) where isAboutRadios(line) {
      text.add(untrustedLines: redaction.applied(to: line + [0x0A]))
    }
    add("kernel.txt", text.bytes)
  }
}

/// Actions of klogctl(3).
private let kernelLogReadAll: CInt = 3
private let kernelLogSize: CInt = 10

private let radioWords: [StaticString] = [
  "bluetooth", "btusb", "hci", "wlan", "wifi", "80211", "brcm", "firmware", "rfkill",
]

private func isAboutRadios(_ line: ArraySlice<UInt8>) -> Bool {
  let line = ByteString(line.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }[...])
  return radioWords.contains { line.contains($0) }
}

extension TextBuilder {
  /// Adds the lines of a file that can contain untrusted text.
  fileprivate mutating func add(untrustedLines bytes: [UInt8]) {
    for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: true) {
      add(verbatim: line)
      add("\n")
    }
  }
}
