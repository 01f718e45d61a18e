import CQRCode

/// A QR Code symbol (ISO/IEC 18004): a square of light and dark modules, with the lowest error correction that is asked for, and
/// a higher one where that costs no room.
public struct QRSymbol {
  /// The greatest version: 321 bytes. With its margin it is 69 modules wide, and so fits a terminal of 80 columns.
  public static let versionMax = 11
  /// The light margin that a scanner needs around the symbol, in modules (ISO/IEC 18004, 5.3.8).
  public static let marginModules = 4
  /// As qrcodegen.h demands for `versionMax`: a bit for each module, and a byte for the length of a side.
  private static let bufferBytes = ((versionMax * 4 + 17) * (versionMax * 4 + 17) + 7) / 8 + 1

  /// Modules of a side, without the margin: 21 to 61.
  public let sideModules: Int
  private let buffer: [UInt8]

  /// A text in UTF-8. Nil when it is empty or too long.
  public init?(_ text: [UInt8]) {
    guard !text.isEmpty, text.count <= Self.bufferBytes else { return nil }
    var copy = text
    var scratch = [UInt8](repeating: 0, count: Self.bufferBytes)
    var buffer = scratch
    let isASCII = text.allSatisfy { $0 < 0x80 }
    guard cqrcode_encode(text, text.count, isASCII, CInt(Self.versionMax), &copy, &scratch, &buffer) else { return nil }
    sideModules = Int(qrcodegen_getSize(buffer))
    self.buffer = buffer
  }

  /// Counted from the top left module; those around the symbol are light.
  public func isDark(column: Int, row: Int) -> Bool {
    // The library answers false outside of the symbol.
    qrcodegen_getModule(buffer, CInt(clamping: column), CInt(clamping: row))
  }
}
