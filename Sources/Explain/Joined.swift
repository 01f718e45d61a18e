/// Concatenates texts. Use it for sentences with many parts: string interpolation emits code for each part, and made
/// the machine code of `Explanation` twice as large.
@inline(never) func joined(_ parts: String...) -> String {
  var all = ""
  for part in parts { all += part }
  return all
}

@inline(never) func decimal(_ number: UInt64) -> String { "\(number)" }

@inline(never) func word(_ text: StaticString) -> String { text.description }
