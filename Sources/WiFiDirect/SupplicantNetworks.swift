import BearerIP

/// The networks that wpa_supplicant's interfaces are configured with.
extension Supplicant {
  /// Removes the networks of `interface` with this name: a daemon that was killed leaves its own behind. `completion` is told
  /// whether there may be others.
  func removeNetworks(named name: [UInt8], of interface: String, _ completion: @escaping (Bool) -> Void) {
    send(to: interface, "LIST_NETWORKS") { [self] reply in
      var hasOthers = reply.isFailure
      // The first line says what the columns are: number, name, address, flags.
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

  /// Adds a network to `interface`, not in use yet. `completion` is told its number, or why there is none.
  func addNetwork(
    to interface: String, _ settings: [String], _ completion: @escaping (_ network: String?, _ reason: String) -> Void
  ) {
    send(to: interface, "ADD_NETWORK") { [self] reply in
      guard !reply.isFailure, reply.bytes.count <= 4 else {
        return completion(nil, "wpa_supplicant adds no network: \(reply.text)")
      }
      let network = reply.text
      var isRefused = false
      for setting in settings {
        send(to: interface, "SET_NETWORK \(network) \(setting)") { reply in if !reply.isOK { isRefused = true } }
      }
      // Answered after all settings.
      send(to: interface, "PING") { [self] _ in
        if !isRefused { return completion(network, "") }
        send(to: interface, "REMOVE_NETWORK \(network)")
        completion(nil, "wpa_supplicant does not take the network's name, passphrase or frequency")
      }
    }
  }
}
