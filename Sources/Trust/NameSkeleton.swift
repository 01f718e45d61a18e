import Primitives

/// The skeleton of a display name. Names with the same skeleton look alike to a reader, and pins treat them as the same
/// name.
///
/// The rules are a subset of the skeletons of Unicode Technical Standard 39, section 4, that is small enough for
/// firmware:
/// - invisible characters are removed (`isInvisible`);
/// - a run of white space becomes one blank, and is removed at the beginning and the end of the name;
/// - Latin letters with diacritics (U+00C0 – U+017F) are decomposed into letter and mark (as in Unicode's form NFD);
/// - fullwidth and mathematical letters and digits become plain letters and digits (as in Unicode's form NFKD);
/// - ASCII capitals become lower case; `0` becomes `o`; `1`, `i` and `|` become `l`; `m` becomes `rn`;
/// - Cyrillic, Greek and Armenian letters, quotes, dashes and slashes become the ASCII characters of similar
///   appearance.
///
/// Unlike the standard, these rules also ignore case. The subset excludes other scripts. The subset also excludes
/// letters that resemble only letters of the same script.
func nameSkeleton(_ name: [UInt8]) -> [UInt8] {
  var decoder = UTF8()
  var iterator = name.makeIterator()
  var skeleton: [UInt8] = []
  while case .scalarValue(let scalar) = decoder.decode(&iterator) {
    let value = scalar.value
    if isInvisible(value) { continue }
    if isBlank(value) {
      if let last = skeleton.last, last != 0x20 { skeleton.append(0x20) }
      continue
    }
    var plain = compatible(value)
    var mark: UInt32?
    if let parts = decomposed(plain) { (plain, mark) = parts }
    if let prototype = prototype(of: plain) { plain = UInt32(prototype) }
    if plain < 0x80 {
      appendASCII(UInt8(plain), to: &skeleton)
    } else if let scalar = UnicodeScalar(plain), let encoded = UTF8.encode(scalar) {
      for byte in encoded { skeleton.append(byte) }
    }
    // The two bytes encode one of U+0300 – U+033F in UTF-8.
    if let mark { skeleton += [0xCC, 0x80 | UInt8(mark & 0x3F)] }
  }
  if skeleton.last == 0x20 { skeleton.removeLast() }
  return skeleton
}

private func appendASCII(_ byte: UInt8, to skeleton: inout [UInt8]) {
  switch byte {
  case UInt8(ascii: "A")...UInt8(ascii: "Z"): appendASCII(byte + 0x20, to: &skeleton)
  case UInt8(ascii: "0"): skeleton.append(UInt8(ascii: "o"))
  case UInt8(ascii: "1"), UInt8(ascii: "i"), UInt8(ascii: "|"): skeleton.append(UInt8(ascii: "l"))
  case UInt8(ascii: "m"): skeleton += [UInt8(ascii: "r"), UInt8(ascii: "n")]
  case UInt8(ascii: "`"): skeleton.append(UInt8(ascii: "'"))
  default: skeleton.append(byte)
  }
}

/// Whether a visible character is White_Space in PropList.txt, or the Braille pattern without dots (U+2800).
private func isBlank(_ value: UInt32) -> Bool {
  switch value {
  case 0x20, 0xA0, 0x1680, 0x2000...0x200A, 0x202F, 0x205F, 0x2800, 0x3000: true
  default: false
  }
}

/// Maps fullwidth forms (U+FF01 – U+FF5E) and mathematical alphanumerics (U+1D400 – U+1D7FF) to the ASCII characters
/// without style. Returns any other character unchanged.
private func compatible(_ value: UInt32) -> UInt32 {
  switch value {
  case 0xFF01...0xFF5E: return value - 0xFF01 + 0x21
  case 0x1D400...0x1D6A3:
    let letter = (value - 0x1D400) % 52
    return letter < 26 ? 0x41 + letter : 0x61 + letter - 26
  case 0x1D7CE...0x1D7FF: return 0x30 + (value - 0x1D7CE) % 10
  default: return value
  }
}

/// The base letter of a character with a diacritic, and the combining mark minus 0x300, from UnicodeData.txt. Covers
/// U+00C0 – U+017F and the letters Ё and Ї. Returns nil for characters without a decomposition.
private func decomposed(_ value: UInt32) -> (UInt32, mark: UInt32)? {
  if value == 0x401 || value == 0x451 { return (UInt32(UInt8(ascii: "e")), mark: 8) }
  if value == 0x407 || value == 0x457 { return (UInt32(UInt8(ascii: "i")), mark: 8) }
  guard (0xC0...0x17F).contains(value) else { return nil }
  // `letters` has the base letter of each character from U+00C0 on. `marks` has its mark: “@” for U+0300, “A” for
  // U+0301, and so on. A dot stands for a character without a decomposition.
  let letters: StaticString = """
    AAAAAA.CEEEEIIII.NOOOOO..UUUUY..aaaaaa.ceeeeiiii.nooooo..uuuuy.yAaAaAaCcCcCcCcDd..EeEeEeEeEeGgGgGgGg\
    Hh..IiIiIiIiI...JjKk.LlLlLl....NnNnNn...OoOoOo..RrRrRrSsSsSsSsTtTt..UuUuUuUuUuUuWwYyYZzZzZz.
    """
  let marks: StaticString = """
    @ABCHJ.g@ABH@ABH.C@ABCH..@ABHA..@ABCHJ.g@ABH@ABH.C@ABCH..@ABHA.HDDFFhhAABBGGLLLL..DDFFGGhhLLBBFFGGgg\
    BB..CCDDFFhhG...BBgg.AAggLL....AAggLL...DDFFKK..AAggLLAABBggLLggLL..CCDDFFJJKKhhBBBBHAAGGLL.
    """
  let index = Int(value - 0xC0)
  let letter = letters.utf8Start[index]
  if letter == UInt8(ascii: ".") { return nil }
  return (UInt32(letter), mark: UInt32(marks.utf8Start[index]) - 0x40)
}

/// The ASCII character that a character of another script resembles, or nil if it resembles none.
private func prototype(of value: UInt32) -> UInt8? {
  for run in prototypeRuns where value >= run.first && value < run.first + UInt32(run.looks.utf8CodeUnitCount) {
    let byte = run.looks.utf8Start[Int(value - run.first)]
    return byte == UInt8(ascii: ".") ? nil : byte
  }
  switch value {
  case 0x131, 0x269, 0x26A, 0x53C, 0x4C0, 0x4CF, 0x2170, 0x2160, 0x217C, 0x216C, 0x2113, 0x1C0, 0x5C0, 0x5D5, 0x5DF,
    0x661, 0x6F1, 0x2223:
    return UInt8(ascii: "l")
  case 0x17F, 0x192: return UInt8(ascii: "f")
  case 0x251: return UInt8(ascii: "a")
  case 0x261, 0x581: return UInt8(ascii: "g")
  case 0x28B, 0x2228: return UInt8(ascii: "v")
  case 0x1D0F, 0x5E1, 0x665, 0x6F5, 0x585, 0x555, 0x2134: return UInt8(ascii: "o")
  case 0x1D20, 0x2174, 0x2164: return UInt8(ascii: "v")
  case 0x1D04, 0x217D, 0x216D: return UInt8(ascii: "c")
  case 0x217E, 0x216E: return UInt8(ascii: "d")
  case 0x2179, 0x2169: return UInt8(ascii: "x")
  case 0x212A: return UInt8(ascii: "k")
  case 0x54D, 0x57D: return UInt8(ascii: "u")
  case 0x54F: return UInt8(ascii: "s")
  case 0x570: return UInt8(ascii: "h")
  case 0x578: return UInt8(ascii: "n")
  case 0x566: return UInt8(ascii: "q")
  case 0x575: return UInt8(ascii: "j")
  case 0x51B, 0x51A: return UInt8(ascii: "q")
  case 0x51D, 0x51C, 0x461: return UInt8(ascii: "w")
  case 0x4BB: return UInt8(ascii: "h")
  case 0x4AF, 0x4AE: return UInt8(ascii: "y")
  case 0x501, 0x500: return UInt8(ascii: "d")
  case 0xB4, 0x2B9, 0x2BB, 0x2BC, 0x2BD, 0x2C8, 0x2018, 0x2019, 0x201B, 0x2032, 0x2035: return UInt8(ascii: "'")
  case 0x201C, 0x201D, 0x201F, 0x2033: return UInt8(ascii: "\"")
  case 0x2010...0x2015, 0x2043, 0x2212, 0xFE58, 0xFE63: return UInt8(ascii: "-")
  case 0x2044, 0x2215, 0x29F8: return UInt8(ascii: "/")
  case 0x2024, 0x660, 0x6F0: return UInt8(ascii: ".")
  case 0x2236, 0xA789, 0x2D0: return UInt8(ascii: ":")
  case 0x201A: return UInt8(ascii: ",")
  default: return nil
  }
}

/// Runs of consecutive characters. `first` is the first character of a run, and `looks` has the ASCII look-alike of
/// each character. A dot stands for a character without a look-alike.
private let prototypeRuns: [(first: UInt32, looks: StaticString)] = [
  // Greek
  (0x391, "ab..ezh.lk.mn.o.p..ty.x.........a.y.....lk..v.o.p.otu.x"),
  // Cyrillic
  (
    0x405,
    "si.j.......a.b..e.3..k.mho.pcty.x......b...a6br.e.3..k.mho.pcty.x......b........si.j...........................vv"
  ),
]
