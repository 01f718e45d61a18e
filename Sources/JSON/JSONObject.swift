import CFormats
import CSystem

/// A JSON object under construction. jansson owns the values. The object is released once: by `text`, or by the object
/// or array that it is added to.
public final class JSONObject {
  fileprivate let handle = json_object()!

  public init() {}

  /// Creates an object with one member. The value of the member is shared with another JSON value.
  public init(_ key: StaticString, _ part: JSONView) {
    key.withUTF8Buffer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { _ = json_object_set(handle, $0.baseAddress, part.handle) }
    }
  }

  public func set(_ key: StaticString, _ value: String) { set(key, jsonString(value)) }
  public func set(_ key: StaticString, _ value: UInt64) { set(key, json_integer(json_int_t(clamping: value))) }
  public func set(_ key: StaticString, _ value: Bool) { set(key, value ? json_true() : json_false()) }
  public func set(_ key: StaticString, _ value: JSONObject) { set(key, value.handle) }
  public func set(_ key: StaticString, _ value: JSONArray) { set(key, value.handle) }

  private func set(_ key: StaticString, _ value: OpaqueJSON?) {
    key.withUTF8Buffer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { _ = json_object_set_new(handle, $0.baseAddress, value) }
    }
  }

  /// Returns the JSON text of this object, and releases the object. The text contains only printable ASCII and line
  /// feeds, so it is harmless on a terminal.
  public func text() -> [UInt8] {
    defer { json_decref(handle) }
    return dumped(handle)
  }
}

/// A JSON array under construction.
public final class JSONArray {
  fileprivate let handle = json_array()!

  public init() {}

  /// Creates an array with one object for each element, which `fill` completes.
  public convenience init<Element>(_ elements: [Element], _ fill: (Element, JSONObject) -> Void) {
    self.init()
    for element in elements {
      let object = JSONObject()
      fill(element, object)
      append(object)
    }
  }

  public func append(_ object: JSONObject) { json_array_append_new(handle, object.handle) }

  public func append(_ text: String) { json_array_append_new(handle, jsonString(text)) }
}

func dumped(_ value: OpaqueJSON?) -> [UInt8] {
  guard let text = json_dumps(value, jsonIndent2 | jsonEnsureASCII) else { return Array("{}".utf8) }
  defer { free(text) }
  var bytes: [UInt8] = []
  for byte in UnsafeRawBufferPointer(start: text, count: strlen(text)) {
    // DEL is the only control character that jansson does not escape.
    if byte == 0x7F { bytes += Array("\\u007f".utf8) } else { bytes.append(byte) }
  }
  return bytes + [0x0A]
}

/// Flags of json_dumps. In jansson.h they are macros that Swift cannot import.
private let jsonIndent2 = 2
private let jsonEnsureASCII = 0x40

typealias OpaqueJSON = UnsafeMutablePointer<json_t>

/// Creates a JSON string. A Swift string is always valid UTF-8, as jansson requires.
private func jsonString(_ text: String) -> OpaqueJSON? {
  var text = text
  return text.withUTF8 { bytes in
    bytes.withMemoryRebound(to: CChar.self) { json_stringn($0.baseAddress ?? emptyText, $0.count) }
  }
}

var emptyText: UnsafePointer<CChar> {
  UnsafeRawPointer(("" as StaticString).utf8Start).assumingMemoryBound(to: CChar.self)
}
