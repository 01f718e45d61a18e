import CSystem
import CommandLine
import Configuration
import ControlSocket
import Doctor
import Status
import Text
import Trust

/// `causeway doctor`
public func commandDoctor(_ words: CommandWords) -> CInt {
  var options = ClientOptions()
  var isJSON = false
  CommandParser.parse(
    "causeway doctor", words,
    help: """
      Check for faults that keep the box from working: configuration, daemon, radios, clock, disk. Each finding comes \
      with its remedy. Nothing is changed. Exit code 1 means that something is wrong.
      """,
    options: ClientOptions.options + [LocalOptions.json]
  ) { key, value in
    if !options.take(key, value) { isJSON = true }
    return nil
  }
  let findings = doctorFindings(options)
  for finding in findings {
    if isJSON { putJSON(finding) } else { Output.put(FindingView.text(finding)) }
  }
  let wrong = findings.count { $0.state == .wrong }
  if !isJSON {
    var text = TextBuilder()
    text.add(wrong == 0 ? "nothing is wrong\n" : "\(wrong) \(wrong == 1 ? "thing is" : "things are") wrong\n")
    Output.put(text)
  }
  return wrong == 0 ? ExitCode.done : ExitCode.failed
}

/// Runs all checks and returns their findings.
func doctorFindings(_ options: ClientOptions) -> [Finding] {
  let path = options.config ?? Configuration.defaultPath
  var findings: [Finding] = []
  do throws(ConfigurationError) {
    let configuration = try Configuration.load(path: options.config)
    for warning in configuration.warnings { findings.append(Finding("configuration", .note, warning)) }
    let isThere = options.config != nil || access(path, F_OK) == 0
    let denied = Doctor(configuration, isDaemonRunning: false).deniedFiles(configuration: isThere ? path : nil)
    if !isThere {
      findings.append(Finding("configuration", .note, "no file \(path): the defaults apply, which accept every node"))
    } else if denied.isEmpty {
      findings.append(Finding("configuration", .good, path))
    }
    findings += denied
    let isRunning = askDaemon(options.socket ?? configuration.controlSocketPath, &findings)
    return findings + Doctor(configuration, isDaemonRunning: isRunning).examine()
  } catch {
    let defaults = Configuration()
    let remedy =
      error.isDenied
      ? "run this as root; without it the checks of its settings are left out"
      : "correct it; the other checks use the defaults"
    findings.append(Finding("configuration", error.isDenied ? .note : .wrong, error.text, remedy: remedy))
    let isRunning = askDaemon(options.socket ?? defaults.controlSocketPath, &findings)
    let doctor = Doctor(defaults, isDaemonRunning: isRunning)
    return findings + (error.isDenied ? doctor.examineBoard() : doctor.examine())
  }
}

/// Asks the daemon for its status. Returns whether the daemon answers.
private func askDaemon(_ path: String, _ findings: inout [Finding]) -> Bool {
  do throws(AccessError) {
    let report = try StatusReport(ControlClient(path: path).status())
    defer { report.release() }
    let isSame = report.version.utf8.elementsEqual(causewayVersion.utf8)
    findings.append(
      isSame
        ? Finding("daemon", .good, "it answers")
        : Finding(
          "daemon", .note, "it runs version \(report.version), and this program is version \(causewayVersion)",
          remedy: "systemctl restart causeway"))
    if !report.isClockSynchronised, case .synchronised = SystemClock.kernelState {
      findings.append(
        Finding(
          "daemon", .note, "its sandbox hides that the clock is synchronised: expired certificates are accepted",
          remedy: "systemctl edit causeway: [Service], ProtectClock=no, SystemCallFilter=clock_adjtime"))
    }
    for (name, text) in report.problems() {
      let remedy = name.utf8.elementsEqual("alarm".utf8) ? "causeway identity alarms" : "causeway log --level warning"
      findings.append(Finding("daemon", .wrong, "\(name): \(text)", remedy: remedy))
    }
    return true
  } catch {
    findings.append(
      error.isDenied
        ? Finding("daemon", .note, error.text)
        : Finding("daemon", .wrong, error.text, remedy: "systemctl start causeway, then causeway log --since boot"))
    return false
  }
}

private func putJSON(_ finding: Finding) {
  var line = JSONLine(event: "finding")
  line.add("check", finding.check)
  switch finding.state {
  case .good: line.add("state", "good" as StaticString)
  case .note: line.add("state", "note" as StaticString)
  case .wrong: line.add("state", "wrong" as StaticString)
  }
  line.add("text", Array(finding.text.utf8))
  line.add("remedy", Array(finding.remedy.utf8))
  line.put()
}
