/// Texts one behind the other. For sentences with many parts: where they are interpolated the compiler writes out each step, which
/// made `Explanation` twice as large.
@inline(never) func joined(_ parts: String...) -> String {
  var all = ""
  for part in parts { all += part }
  return all
}

@inline(never) func decimal(_ number: UInt64) -> String { "\(number)" }

@inline(never) func word(_ text: StaticString) -> String { text.description }
