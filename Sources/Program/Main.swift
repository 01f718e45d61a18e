import Applications
import CSystem
import CommandLine
import Operator
import Selftest

@main struct Main {
  static func main() { exit(runCommandLine()) }
}

/// Runs the command that the process's arguments name, and returns its exit code (`ExitCode`).
private func runCommandLine() -> CInt {
  csystem_prepare_process()
  let code = dispatch(
    CommandWords.all, "causeway", commands, help: "A relay between Bluetooth, Wi-Fi Direct and Ethernet peers.")
  return code == ExitCode.done && Output.hasFailed ? ExitCode.failed : code
}

private var commands: [Command] {
  [
    Command(name: "run", summary: "run the relay until a signal ends it", run: commandRun),
    Command(name: "status", summary: "show the box, its bearers, links and peers", run: commandStatus),
    Command(name: "peers", summary: "show the peers in reach", run: commandPeers),
    Command(name: "links", summary: "show the neighbours and their links", run: commandLinks),
    Command(name: "routes", summary: "show the route to each peer", run: commandRoutes),
    Command(name: "radios", summary: "show the state of each radio", run: commandRadios),
    Command(name: "join", summary: "show a phone how to join the box's Wi-Fi group", run: commandJoin),
    Command(name: "sessions", summary: "show the applications and their sessions", run: commandSessions),
    Command(name: "explain", summary: "explain why two nodes can or cannot talk", run: commandExplain),
    Command(name: "ping", summary: "measure the round-trip time to a peer", run: commandPing),
    Command(name: "trace", summary: "show each link of the route to a peer", run: commandTrace),
    Command(name: "top", summary: "show live traffic: links, radios, top sources", run: commandTop),
    Command(name: "metrics", summary: "show the status for Prometheus", run: commandMetrics),
    Command(name: "doctor", summary: "check for faults that keep the box from working", run: commandDoctor),
    Command(name: "bundle", summary: "collect the data for a bug report, without secrets", run: commandBundle),
    Command(name: "log", summary: "show the journal, with or without the daemon", run: commandLog),
    Command(name: "capture", summary: "capture the links' frames for Wireshark", run: commandCapture),
    Command(name: "browse", summary: "show the services of peers as they come and go", run: commandBrowse),
    Command(name: "chat", summary: "chat with everyone in reach, or with one peer", run: commandChat),
    Command(name: "pipe", summary: "send standard input to a peer, or receive it", run: commandPipe),
    Command(name: "send", summary: "send files and folders to a peer", run: commandSend),
    Command(name: "receive", summary: "receive files and folders, with a prompt", run: commandReceive),
    Command(name: "drop", summary: "receive from trusted peers, unattended", run: commandDrop),
    Command(name: "accept", summary: "accept invitations for programs without a screen", run: commandAccept),
    Command(name: "peer", summary: "compare keys with another node", run: commandPeer),
    Command(
      name: "identity", summary: "show, create, import the box's key; trust, revoke others", run: commandIdentity),
    Command(name: "config", summary: "check a configuration before the box reads it", run: commandConfig),
    Command(name: "leds", summary: "list the patterns of the status LED", run: commandLEDs),
    Command(name: "reload", summary: "reload the configuration", run: commandReload),
    Command(name: "diagnose", summary: "be the only command of an SSH account", run: commandDiagnose),
    Command(name: "selftest", summary: "check this binary on this machine", run: commandSelftest),
    Command(name: "version", summary: "show the version and build of this binary", run: commandVersion),
  ]
}
