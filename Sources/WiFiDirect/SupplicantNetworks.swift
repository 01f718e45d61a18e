import BearerIP

/// Changes the configured networks of wpa_supplicant's interfaces.
extension Supplicant {
  /// Removes the networks with this name from `interface`. A daemon that was killed left a network with this name in
  /// wpa_supplicant. `completion` receives whether other networks are configured; true if wpa_supplicant does not list
  /// them.
  func removeNetworks(named name: [UInt8], of interface: String, _ completion: @escaping (Bool) -> Void) {
    send(to: interface, "LIST_NETWORKS") { [self] reply in
      var hasOthers = reply.isFailure
      // The first line is the header: number, name, address, flags.
      for line in reply.bytes.split(separator: 0x0A).dropFirst() {
        let fields = line.split(separator: 0x09, omittingEmptySubsequences: false)
        if fields.count >= 2, fields[1].elementsEqual(name) {
          send(to: interface, "REMOVE_NETWORK \(string(fields[0]))")
        } else {
          hasOthers = true
        }
      }
      completion(hasOthers)
    }
  }

  /// Adds a network to `interface` without enabling it. `completion` receives the network's number, or nil and the
  /// reason of the failure.
  func addNetwork(
    to interface: String, _ settings: [String], _ completion: @escaping (_ network: String?, _ reason: String) -> Void
  ) {
    send(to: interface, "ADD_NETWORK") { [self] reply in
      guard !reply.isFailure, reply.bytes.count <= 4 else {
        return completion(nil, "wpa_supplicant cannot add a network: \(reply.text)")
      }
      let network = reply.text
      var isRefused = false
      for setting in settings {
        send(to: interface, "SET_NETWORK \(network) \(setting)") { reply in if !reply.isOK { isRefused = true } }
      }
      // wpa_supplicant answers commands in order, so this reply follows those to all settings.
      send(to: interface, "PING") { [self] _ in
        if !isRefused { return completion(network, "") }
        send(to: interface, "REMOVE_NETWORK \(network)")
        completion(nil, "wpa_supplicant does not accept the network's name, passphrase or frequency")
      }
    }
  }
}
