import Primitives

/// The skeleton of a display name. Names with the same skeleton look alike to a reader, and pins treat them as the same
/// name.
///
/// The rules are a subset of the skeletons of Unicode Technical Standard 39, section 4, that is small enough for
/// firmware:
/// - invisible characters are removed (`isInvisible`);
/// - a run of white space becomes one blank, and is removed at the beginning and the end of the name;
/// - Latin letters with diacritics (U+00C0 – U+017F) are decomposed into letter and mark (as in Unicode's form NFD);
/// - a character of any script that looks like an ASCII letter or digit becomes that letter or digit
///   (`asciiLookAlike`), and a ligature becomes its letters;
/// - ASCII capitals become lower case; `0` becomes `o`; `1`, `i` and `|` become `l`; `m` becomes `rn`;
/// - quotes, dashes and slashes become the ASCII characters of similar appearance.
///
/// Unlike the standard, these rules also ignore case. The subset excludes letters that resemble only letters that are
/// not ASCII.
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
    if let letters = ligature(value) {
      for index in 0..<letters.utf8CodeUnitCount { appendASCII(letters.utf8Start[index], to: &skeleton) }
      continue
    }
    var plain = value
    var mark: UInt32?
    if let parts = decomposed(plain) { (plain, mark) = parts }
    if let look = asciiLookAlike(plain) ?? punctuation(plain) { plain = UInt32(look) }
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

/// The letters of a character that is several Latin letters in one, or nil for any other character.
private func ligature(_ value: UInt32) -> StaticString? {
  switch value {
  case 0xFB00: "ff"
  case 0xFB01: "fi"
  case 0xFB02: "fl"
  case 0xFB03: "ffi"
  case 0xFB04: "ffl"
  case 0xFB05, 0xFB06: "st"
  case 0x132, 0x133: "ij"
  case 0x1C7...0x1C9: "lj"
  case 0x1CA...0x1CC: "nj"
  case 0x1F1...0x1F3: "dz"
  default: nil
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

/// The ASCII punctuation mark that a character resembles, or nil if it resembles none.
private func punctuation(_ value: UInt32) -> UInt8? {
  switch value {
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
