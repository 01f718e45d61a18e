/// Concatenates texts. It serves sentences with many parts: string interpolation emits code for each step, which made
/// `Explanation` twice as large.
@inline(never) func joined(_ parts: String...) -> String {
  var all = ""
  for part in parts { all += part }
  return all
}

@inline(never) func decimal(_ number: UInt64) -> String { "\(number)" }

@inline(never) func word(_ text: StaticString) -> String { text.description }
