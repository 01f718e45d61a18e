import CSystem
import CMbedTLS
import CAvahi
import CBluetooth
import CWPA
import CFormats
import Configuration

@main struct Main {
  static func main() {
    print(mbedtls_sha256_self_test(0))
    var a = bdaddr_t(b: (1, 2, 3, 4, 5, 6)); var b = a
    print(bacmp(&a, &b)); print(json_object() != nil)
    let w = wpa_ctrl_open("/nonexistent"); print(w == nil)
    print(ini_parse("/nonexistent", nil, nil))
    print(avahi_strerror(-1) != nil)
    do throws(ConfigurationError) { print(try Configuration.load(path: nil).node.displayName) } catch { print(error.text) }
  }
}
