import Bearer
import BearerBluetooth
import Primitives

/// Reports the traffic of links to the Bluetooth radios, which adapt scans and connections to the traffic.
extension Relay {
  /// Reports the bytes that links over Bluetooth and Wi-Fi have sent and received. Called at the end of each pass of
  /// the event loop.
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
