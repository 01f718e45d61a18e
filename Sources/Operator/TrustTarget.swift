import CommandLine
import Configuration
import ControlSocket
import Identity
import Primitives
import Text
import Trust

/// A key that a word of the command line can identify, and where the key was seen.
struct TrustCandidate {
  let id: NodeID
  /// The name that the node states, or the name of the pin; may be empty.
  let name: String
  let source: String

  init(id: NodeID, name: String, source: String) {
    self.id = id
    self.name = name
    self.source = source
  }

  init(_ pin: Pin) {
    let name = String(decoding: pin.name, as: UTF8.self)
    self.init(id: pin.node, name: name, source: pin.isByOperator ? "pinned by the operator" : "pinned at first use")
  }
}

/// The key that a word of the command line identifies.
struct TrustTarget {
  var id: NodeID
  /// The word if it is a name; otherwise empty.
  var name: String
  /// The candidates with this key.
  var seen: [TrustCandidate] = []
}

/// The key that a word of the command line identifies. A full id of 32 digits identifies its key even if the key is
/// unknown here; the word is then never taken as a name.
func trustTarget(
  _ operation: TrustOperation, _ word: String, _ candidates: [TrustCandidate]
) throws(CommandError) -> TrustTarget {
  if let id = NodeIDSyntax.parse(ByteString(word)) {
    return TrustTarget(id: id, name: "")
  }
  let bytes = Array(word.utf8)
  let mayBeName = !looksLikeNodeID(bytes.span.bytes)
  var found: [TrustTarget] = []
  for candidate in candidates {
    let isName = mayBeName && candidate.name.utf8.elementsEqual(bytes)
    guard isName || candidate.id.begins(withDigits: bytes) else { continue }
    let index = found.firstIndex { $0.id == candidate.id } ?? found.endIndex
    if index == found.endIndex { found.append(TrustTarget(id: candidate.id, name: "")) }
    if isName { found[index].name = word }
    found[index].seen.append(candidate)
  }
  if found.count == 1 {
    // `untrust` with a name removes only the pin of this name, not the key's other pins.
    return operation == .unpin && !found[0].name.utf8.isEmpty ? TrustTarget(id: .none, name: word) : found[0]
  }
  if found.isEmpty {
    // The daemon can have a pin (from trust on first use) that is not on disk yet, so it must decide.
    if operation == .unpin && mayBeName { return TrustTarget(id: .none, name: word) }
    throw CommandError(
      saying:
        "no known name or id matches “\(shown(word))”; “causeway status” lists peers and refused nodes")
  }
  var list = ""
  for target in found { list += list.utf8.isEmpty ? target.id.text : ", " + target.id.text }
  throw CommandError(saying: "“\(shown(word))” matches \(list); give the whole id")
}

/// Asks the operator to confirm the key that a name or the first digits of an id identify, before the key is pinned. A
/// stranger chooses its own name, and can generate keys until its id begins with given digits. A whole id needs no
/// confirmation.
///
/// - `name`: the name under which the key is pinned; may be empty.
/// - `ask`: returns the answer, or nil if there is no terminal.
func confirmPin(
  of target: TrustTarget, _ word: String, as name: String, ask: (TextBuilder) -> Bool?
) throws(CommandError) {
  if NodeIDSyntax.parse(ByteString(word)) != nil { return }
  let seen = seenText(target)
  var question = TextBuilder()
  question.add("Trust \(target.id.text)")
  if !name.utf8.isEmpty { question.add(" as “\(shown(name))”") }
  question.add("? It was \(seen). [y/N] ")
  guard let isConfirmed = ask(question) else {
    throw CommandError(
      saying:
        "“\(shown(word))” is \(target.id.text), \(seen); compare this id with that of its owner, and give the whole id")
  }
  if !isConfirmed { throw CommandError(saying: "not trusted") }
}

/// Under which names and where a key was seen, for example: seen as “bob” (linked over ethernet, 192.0.2.7:41820)
private func seenText(_ target: TrustTarget) -> String {
  var text = ""
  for candidate in target.seen {
    text += text.utf8.isEmpty ? "seen " : ", and "
    text += candidate.name.utf8.isEmpty ? "without a name" : "as “\(shown(candidate.name))”"
    text += " (\(candidate.source))"
  }
  return text
}
