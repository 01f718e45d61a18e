import CQRCode

/// A QR Code symbol (ISO/IEC 18004): a square of light and dark modules. The error correction level is the highest that
/// does not enlarge the symbol.
public struct QRSymbol {
  /// The highest version (size) of a symbol, which has room for 321 bytes. A symbol of this version is 69 modules wide
  /// with its margin, so it fits a terminal of 80 columns.
  public static let versionMax = 11
  /// The light margin that a scanner needs around the symbol, in modules (ISO/IEC 18004, 5.3.8).
  public static let marginModules = 4
  /// The buffer size that qrcodegen.h requires for `versionMax`: one bit per module, and one byte for the side length.
  private static let bufferBytes = ((versionMax * 4 + 17) * (versionMax * 4 + 17) + 7) / 8 + 1

  /// The side length in modules without the margin: 21 to 61.
  public let sideModules: Int
  private let buffer: [UInt8]

  /// Encodes UTF-8 text. Returns nil if the text is empty or too long.
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

  /// Whether a module is dark, counted from the top left. Modules outside the symbol are light.
  public func isDark(column: Int, row: Int) -> Bool {
    // The library returns false outside the symbol.
    qrcodegen_getModule(buffer, CInt(clamping: column), CInt(clamping: row))
  }
}
