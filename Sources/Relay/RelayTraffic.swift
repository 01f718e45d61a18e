import Bearer
import BearerBluetooth
import Primitives

/// What passes over links, for the radios that adapt to it.
extension Relay {
  /// At the end of each wake-up.
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
  /// Its radio may have the antenna of Bluetooth's.
  var isWiFi: Bool {
    switch self {
    case .wifi, .wifiDirect: true
    case .ethernet, .bluetoothLE, .bluetoothClassic, .loopback: false
    }
  }
}
