/// An uncompressed archive of text files in one folder. The format is ustar, which every tar reads (POSIX, pax, “ustar
/// Interchange Format”).
struct Archive {
  /// The maximum size of an archive in bytes.
  static let bytesMax = 4 << 20
  private static let block = 512
  /// The maximum length of a file's name in bytes, including the folder.
  private static let nameBytesMax = 100

  private let folder: String
  private let seconds: UInt64
  private var all: [UInt8] = []

  /// Creates an empty archive.
  ///
  /// - `folder`: the name of the folder that contains all files of the archive.
  /// - `seconds`: the modification time of the files, in seconds since 1970.
  init(folder: String, seconds: UInt64) {
    self.folder = folder
    self.seconds = seconds
  }

  /// Adds a file that only its owner may read. Returns false, and adds nothing, if the archive would exceed `bytesMax`
  /// or the name is too long.
  mutating func add(_ name: String, _ contents: [UInt8]) -> Bool {
    let path = Array("\(folder)/\(name)".utf8)
    let size = Self.whole(contents.count)
    guard path.count <= Self.nameBytesMax, all.count + Self.block + size + 2 * Self.block <= Self.bytesMax else {
      return false
    }
    all += header(path, contents.count) + contents
    all += [UInt8](repeating: 0, count: size - contents.count)
    return true
  }

  /// The complete archive, with its end marker.
  var bytes: [UInt8] { all + [UInt8](repeating: 0, count: 2 * Self.block) }

  private static func whole(_ count: Int) -> Int { (count + block - 1) / block * block }

  private func header(_ path: [UInt8], _ size: Int) -> [UInt8] {
    var header = [UInt8](repeating: 0, count: Self.block)
    func put(_ text: [UInt8], at offset: Int) { header.replaceSubrange(offset..<(offset + text.count), with: text) }
    put(path, at: 0)
    put(octal(0o600, 7), at: 100)
    put(octal(0, 7), at: 108)
    put(octal(0, 7), at: 116)
    put(octal(UInt64(size), 11), at: 124)
    put(octal(seconds, 11), at: 136)
    // The checksum is computed as if its own field contained blanks.
    put([UInt8](repeating: 0x20, count: 8), at: 148)
    put(Array("0".utf8), at: 156)
    put(Array("ustar\u{0}00".utf8), at: 257)
    put(Array("root".utf8), at: 265)
    put(Array("root".utf8), at: 297)
    put(octal(0, 7), at: 329)
    put(octal(0, 7), at: 337)
    put(octal(header.reduce(0) { $0 + UInt64($1) }, 6) + [0], at: 148)
    return header
  }

  /// The lowest octal digits of a number, as ASCII text.
  private func octal(_ number: UInt64, _ digits: Int) -> [UInt8] {
    (0..<digits).map { UInt8(ascii: "0") + UInt8(number >> UInt64(3 * (digits - 1 - $0)) & 7) }
  }
}
