import CFormats
import CSystem

/// A JSON value owned by jansson. An absent member reads as the empty string, as zero or as false.
struct JSONView {
  let handle: OpaqueJSON?

  private init(_ handle: OpaqueJSON?) { self.handle = handle }

  /// Parses a JSON object. Returns nil for invalid text and for any other JSON value.
  init?(parsing bytes: [UInt8]) {
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

  func release() { if let handle { json_decref(handle) } }

  var exists: Bool { handle != nil }
  var string: String { json_string_value(handle).map { String(cString: $0) } ?? "" }
  var number: UInt64 { UInt64(clamping: json_integer_value(handle)) }
  var isTrue: Bool { handle.map { $0.pointee.type == JSON_TRUE } ?? false }

  subscript(key: StaticString) -> JSONView {
    key.withUTF8Buffer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { JSONView(json_object_get(handle, $0.baseAddress)) }
    }
  }

  func forEach(_ body: (JSONView) -> Void) {
    for index in 0..<json_array_size(handle) { body(JSONView(json_array_get(handle, index))) }
  }

  func forEachMember(_ body: (String, JSONView) -> Void) {
    var iterator = json_object_iter(handle)
    while let current = iterator {
      body(String(cString: json_object_iter_key(current)), JSONView(json_object_iter_value(current)))
      iterator = json_object_iter_next(handle, current)
    }
  }
}
