import CSystem
import Primitives

/// A temporary directory that is removed with its test.
final class TemporaryDirectory {
  let path: String
  init() {
    var template = Array("/tmp/causeway-test-XXXXXX".utf8CString)
    path = String(cString: mkdtemp(&template))
  }
  deinit {
    for name in ["journal", "other"] { unlink(path + "/" + name) }
    rmdir(path)
  }
}

let aliceID = NodeID(high: 0xA11C_E000_0000_0001, low: 1)
let bobID = NodeID(high: 0xB0B0_0000_0000_0002, low: 2)
