import Bearer
import BearerBluetooth
import Primitives

/// Reports the traffic of links to the radios, which adapt to it.
extension Relay {
  /// Reports the bytes that links have passed. Called at the end of each wake-up.
  func tellBluetoothTraffic() {
    guard let bluetooth else { return }
    var overWiFi: UInt64 = 0
    for driver in drivers where driver.handoff.bearer != .ethernet {
      let passed = driver.takePassed()
      if passed == 0 { continue }
      if driver.handoff.bearer.isWiFi {
        overWiFi &+= passed
      } else {
        bluetooth.passed(driver.handoff.remote, passed)
      }
    }
    if overWiFi > 0 { bluetooth.passedOverWiFi(overWiFi) }
  }
}

extension BearerKind {
  /// Whether the bearer's radio may share an antenna with Bluetooth.
  var isWiFi: Bool {
    switch self {
    case .wifi, .wifiDirect: true
    case .ethernet, .bluetoothLE, .bluetoothClassic, .loopback: false
    }
  }
}
