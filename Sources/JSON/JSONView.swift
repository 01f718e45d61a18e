import CFormats
import CSystem

/// A JSON value owned by jansson. An absent member reads as the empty string, as zero or as false.
public struct JSONView {
  let handle: OpaqueJSON?

  private init(_ handle: OpaqueJSON?) { self.handle = handle }

  /// Parses a JSON object. Returns nil for invalid text and for any other JSON value.
  public init?(parsing bytes: [UInt8]) {
    let parsed = bytes.withUnsafeBytes { raw in
      raw.withMemoryRebound(to: CChar.self) { json_loadb($0.baseAddress, $0.count, 0, nil) }
    }
    guard let parsed else { return nil }
    guard parsed.pointee.type == JSON_OBJECT else {
      json_decref(parsed)
      return nil
    }
    handle = parsed
  }

  public func release() { if let handle { json_decref(handle) } }

  public var exists: Bool { handle != nil }
  public var string: String { json_string_value(handle).map { String(cString: $0) } ?? "" }
  public var number: UInt64 { UInt64(clamping: json_integer_value(handle)) }
  public var isTrue: Bool { handle.map { $0.pointee.type == JSON_TRUE } ?? false }

  public subscript(key: StaticString) -> JSONView {
    key.withUTF8Buffer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { JSONView(json_object_get(handle, $0.baseAddress)) }
    }
  }

  public func forEach(_ body: (JSONView) -> Void) {
    for index in 0..<json_array_size(handle) { body(JSONView(json_array_get(handle, index))) }
  }

  public func forEachMember(_ body: (String, JSONView) -> Void) {
    var iterator = json_object_iter(handle)
    while let current = iterator {
      body(String(cString: json_object_iter_key(current)), JSONView(json_object_iter_value(current)))
      iterator = json_object_iter_next(handle, current)
    }
  }

  /// The UTF-8 of a string, or nil for any other value.
  public var text: [UInt8]? { json_string_value(handle).map { Array(String(cString: $0).utf8) } }

  /// Replaces the content of a string.
  public func set(_ text: [UInt8]) {
    text.withUnsafeBytes { raw in
      raw.withMemoryRebound(to: CChar.self) {
        _ = json_string_setn(UnsafeMutablePointer(handle), $0.baseAddress ?? emptyText, $0.count)
      }
    }
  }

  /// The JSON text of this value, in the form of `JSONObject.text`.
  public func jsonText() -> [UInt8] { dumped(handle) }
}
