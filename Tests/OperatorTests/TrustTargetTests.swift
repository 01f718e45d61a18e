import CommandLine
import ControlSocket
import Primitives
import Testing
import Text

@testable import Operator

private let bob = NodeID(high: 0xB0B0_1234_0000_0000, low: 1)
/// A key that was generated so that its id begins like that of bob.
private let ground = NodeID(high: 0xB0B0_6666_0000_0000, low: 2)
private let linked = TrustCandidate(id: bob, name: "bob", source: "linked over ethernet, 192.0.2.7:41820")
private let refused = TrustCandidate(id: ground, name: "bob", source: "refused: its key is revoked")

/// Whether the key that `word` identifies may be pinned: “pinned”, or the reason of a refusal. `answer` is the answer
/// on the terminal, nil without a terminal. Returns the questions too.
private func pin(
  _ word: String, among candidates: [TrustCandidate], as name: String = "", answer: Bool?
) -> (result: String, questions: [String]) {
  var questions: [String] = []
  do throws(CommandError) {
    let target = try trustTarget(.pin, word, candidates)
    try confirmPin(of: target, word, as: name) { question in
      questions.append(String(decoding: question.bytes, as: UTF8.self))
      return answer
    }
    return ("pinned", questions)
  } catch {
    return (String(decoding: error.text ?? [], as: UTF8.self), questions)
  }
}

@Suite struct TrustTargetTests {
  @Test(arguments: [nil, true, false])
  func `a whole id is pinned without a question`(_ answer: Bool?) {
    #expect(pin(ground.text, among: [refused], answer: answer) == ("pinned", []))
    #expect(pin(ground.text, among: [], answer: answer) == ("pinned", []))
  }

  @Test(arguments: ["b0b0", "b0b06666", "bob"])
  func `a prefix or a name asks for confirmation with the whole id and where it was seen`(_ word: String) {
    let asked = pin(word, among: [refused], as: "bob", answer: true)
    #expect(asked.result == "pinned")
    #expect(
      asked.questions == ["Trust \(ground.text) as “bob”? It was seen as “bob” (refused: its key is revoked). [y/N] "])
    #expect(pin(word, among: [refused], answer: false).result == "not trusted")
  }

  @Test(arguments: ["b0b0", "bob"])
  func `without a terminal only the whole id pins a key`(_ word: String) {
    #expect(
      pin(word, among: [linked], answer: nil).result
        == "“\(word)” is \(bob.text), seen as “bob” (linked over ethernet, 192.0.2.7:41820); "
        + "compare this id with that of its owner, and give the whole id")
  }

  @Test func `a key that was seen twice is shown with both sightings`() {
    let again = TrustCandidate(id: bob, name: "", source: "pinned at first use")
    #expect(
      pin("b0b0", among: [linked, again], answer: true).questions == [
        "Trust \(bob.text)? It was seen as “bob” (linked over ethernet, 192.0.2.7:41820), "
          + "and without a name (pinned at first use). [y/N] "
      ])
  }

  @Test func `a word that matches two keys is refused without a question`() {
    let asked = pin("b0b0", among: [linked, refused], answer: true)
    #expect(asked == ("“b0b0” matches \(bob.text), \(ground.text); give the whole id", []))
  }

  @Test func `a name in the question cannot control the terminal`() {
    let nasty = TrustCandidate(id: bob, name: "b\u{1B}[2Jb” (pinned)", source: "refused: it has no certificate")
    let question = pin("b0b0", among: [nasty], answer: true).questions[0]
    #expect(question.contains("seen as “b?[2Jb' (pinned)” (refused: it has no certificate)"))
  }
}
