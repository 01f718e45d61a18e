import CMbedTLS

/// The blocks of a PEM file (RFC 7468), and the faults of the file: lines that are not understood.
///
/// Text outside of the blocks is allowed, because openssl writes the contents of a certificate there. A line that is
/// not clearly text is a fault (`PEMText`), because a block that is skipped may be a revocation list.
package struct PEMFile {
  /// A block, from its BEGIN line to its END line.
  package struct Block {
    package let label: ArraySlice<UInt8>
    /// The number of the BEGIN line, where the first line of the file is 1.
    package let line: Int
    /// The lines between BEGIN and END.
    fileprivate let contents: ArraySlice<UInt8>

    package func isLabelled(_ text: StaticString) -> Bool { isEqual(label, text) }

    /// Whether the block is a private key of any kind, encrypted or not.
    package var isPrivateKey: Bool {
      let kind: StaticString = "PRIVATE KEY"
      return isEqual(label.suffix(kind.utf8CodeUnitCount), kind)
    }

    /// The block's DER, or nil if the block contains anything but base64.
    package var der: [UInt8]? {
      let text = Array(contents)
      // The buffer is long enough, because four characters encode three bytes.
      var bytes = [UInt8](repeating: 0, count: text.count)
      var count = 0
      guard mbedtls_base64_decode(&bytes, bytes.count, &count, text, text.count) == 0, count > 0 else { return nil }
      return Array(bytes.prefix(count))
    }
  }

  /// A line that is not understood.
  package struct Fault {
    package let line: Int
    package let text: StaticString
  }

  package static let certificate: StaticString = "CERTIFICATE"
  package static let revocationList: StaticString = "X509 CRL"

  package private(set) var blocks: [Block] = []
  package private(set) var faults: [Fault] = []

  private var open: (label: ArraySlice<UInt8>, line: Int, start: Int)?
  /// The lines at which the contents of revocation lists begin as text.
  private var headings: [Int] = []

  package init(_ file: [UInt8]) {
    var number = 0
    var start = file.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    while start < file.count {
      number += 1
      let end = file[start...].firstIndex(of: 0x0A) ?? file.count
      read(file, start..<end, number)
      start = end + 1
    }
    if let open { fail(open.line, "its END line is missing: the file is truncated") }
    let lists = blocks.count { $0.isLabelled(Self.revocationList) }
    if headings.count > lists, let heading = headings.last {
      fail(heading, "the contents of a revocation list as text, without the list in PEM")
    }
  }

  private mutating func read(_ file: [UInt8], _ range: Range<Int>, _ number: Int) {
    var line = file[range]
    while let last = line.last, last == 0x0D || last == 0x20 || last == 0x09 { line.removeLast() }
    if line.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
      return fail(number, "a control character; save it as text with Unix line ends")
    }
    if let open {
      if let label = Self.label(of: line, "-----END ") {
        if label.elementsEqual(open.label) {
          blocks.append(Block(label: open.label, line: open.line, contents: file[open.start..<range.lowerBound]))
        } else {
          fail(number, "the END line belongs to another block")
        }
        self.open = nil
      } else if Self.looksLikeBoundary(line) {
        fail(open.line, "its END line is missing")
        self.open = nil
        begin(line, range, number)
      }
      return
    }
    begin(line, range, number)
  }

  private mutating func begin(_ line: ArraySlice<UInt8>, _ range: Range<Int>, _ number: Int) {
    if let label = Self.label(of: line, "-----BEGIN ") {
      open = (label, number, range.upperBound + 1)
    } else if let fault = PEMText.fault(in: line) {
      fail(number, fault)
    } else if PEMText.isListHeading(line) {
      headings.append(number)
    }
  }

  private mutating func fail(_ line: Int, _ text: StaticString) {
    if faults.count < Self.faultsMax { faults.append(Fault(line: line, text: text)) }
  }

  /// The maximum number of faults that are listed for a file.
  private static let faultsMax = 16

  private static func label(of line: ArraySlice<UInt8>, _ opening: StaticString) -> ArraySlice<UInt8>? {
    let closing: StaticString = "-----"
    guard line.count > opening.utf8CodeUnitCount + closing.utf8CodeUnitCount,
      isEqual(line.prefix(opening.utf8CodeUnitCount), opening),
      isEqual(line.suffix(closing.utf8CodeUnitCount), closing)
    else { return nil }
    let label = line.dropFirst(opening.utf8CodeUnitCount).dropLast(closing.utf8CodeUnitCount)
    return label.contains(UInt8(ascii: "-")) ? nil : label
  }

  /// Whether two hyphens begin or end the line, as in a BEGIN or END line that has a character too few or too many.
  private static func looksLikeBoundary(_ line: ArraySlice<UInt8>) -> Bool {
    let text = line.drop { $0 == 0x20 || $0 == 0x09 }
    let hyphens: StaticString = "--"
    return isEqual(text.prefix(2), hyphens) || isEqual(text.suffix(2), hyphens)
  }
}

private func isEqual(_ bytes: ArraySlice<UInt8>, _ text: StaticString) -> Bool {
  bytes.count == text.utf8CodeUnitCount
    && bytes.elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
}
