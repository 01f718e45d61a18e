import CommandLine
import Text
import LocalAPI
import Primitives
import Session

@testable import Applications

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

let bob = MemberAddress(node: NodeID(high: 0xB0B0_1234_0000_0000, low: 1), endpoint: 1)
let carol = MemberAddress(node: NodeID(high: 0xCA20_1234_0000_0000, low: 2), endpoint: 1)

/// A node one link away.
func peer(_ name: String, isVerified: Bool = true) -> LocalPeer {
  LocalPeer(name: bytes(name), hops: 1, isVerified: isVerified)
}

/// The event that a node offers one service.
func service(_ type: String, of address: MemberAddress, _ peer: LocalPeer, info: [[UInt8]] = []) -> LocalEvent {
  .services(
    browse: 2, reference: UInt16(address.endpoint), address.node, peer,
    [Service(endpoint: address.endpoint, type: bytes(type), info: info)])
}

/// The event that a member is connected to the session.
func connected(_ address: MemberAddress, _ peer: LocalPeer, session: UInt32 = 1) -> LocalEvent {
  .member(session: session, address, .connected, peer)
}

/// The event that an application invites the command.
func invited(by address: MemberAddress, _ peer: LocalPeer, rules: SessionRules, number: UInt32 = 90) -> LocalEvent {
  let invitation = Invitation(
    handle: InvitationHandle(number: number), from: address, to: 1, rules: rules, memberCount: 1, context: [],
    deadline: .never)
  return .invited(service: 1, invitation, milliseconds: 30_000, peer)
}

/// Options of the command line.
func localOptions(_ values: [(key: CInt, value: String)] = []) -> LocalOptions {
  var options = LocalOptions()
  for (key, value) in values { _ = options.take(key, value) }
  return options
}

/// How a command ended: its exit code, and the reason that it throws or an empty text.
struct CommandResult: Equatable {
  let code: CInt
  let text: String

  init(_ code: CInt, _ text: String) {
    self.code = code
    self.text = text
  }
}

/// The result of a command's body.
func result(of body: () throws(CommandError) -> Void) -> CommandResult {
  do throws(CommandError) {
    try body()
    return CommandResult(ExitCode.done, "")
  } catch {
    return CommandResult(error.code, String(decoding: error.text ?? [], as: UTF8.self))
  }
}
