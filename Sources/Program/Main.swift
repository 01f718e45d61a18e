import CSystem
import Commands

@main struct Main {
  static func main() { exit(runCommandLine()) }
}
