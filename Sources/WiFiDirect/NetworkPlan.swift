/// The settings of a `HostedNetwork`.
struct NetworkPlan {
  enum Kind {
    case accessPoint
    case mesh
  }

  var kind: Kind
  var ssid: String
  var passphrase: String
  /// The frequency of the network in MHz.
  var frequency: UInt16
  /// The arguments of SET_NETWORK, in addition to the network's name and frequency.
  var settings: [String]
  /// The arguments of SET for the network's interface.
  var interfaceSettings: [String]
  /// Whether another network uses the radio's own interface.
  var isRadioShared = false

  /// The word for the network in messages.
  var noun: StaticString { kind == .mesh ? "mesh" : "access point" }
  /// The beginning of the created interface's name; the name of the radio's own interface follows.
  var prefix: StaticString { kind == .mesh ? "mesh-" : "ap-" }
  /// The mode that the reply to STATUS reports when the network is up.
  var mode: StaticString { kind == .mesh ? "mesh" : "AP" }
  /// The state of the radio until the network is up.
  var stateBefore: WiFiDirectState { kind == .mesh ? .joining : .creatingGroup }

  /// An ordinary WPA2 network that replaces a Wi-Fi Direct group if the radio or its wpa_supplicant lacks Wi-Fi Direct.
  /// Phones join the network by its name and passphrase.
  static func accessPoint(_ options: WiFiDirectOptions, hint: UInt64) -> NetworkPlan {
    NetworkPlan(
      kind: .accessPoint,
      ssid: options.ssid.utf8.isEmpty ? DeviceName.make(prefix: options.deviceNamePrefix, hint: hint) : options.ssid,
      passphrase: options.usedPassphrase,
      frequency: options.frequency == 0 ? HostedNetwork.frequencyDefault : options.frequency,
      settings: [
        "psk \"\(options.usedPassphrase)\"", "mode 2", "key_mgmt WPA-PSK", "proto RSN", "pairwise CCMP", "group CCMP",
      ],
      interfaceSettings: ["max_num_sta \(options.stationsMax)"])
  }

  /// This node's part of a mesh (IEEE 802.11-2020, 14), with SAE and protected management frames.
  static func mesh(_ mesh: MeshOptions, _ options: WiFiDirectOptions) -> NetworkPlan {
    NetworkPlan(
      kind: .mesh, ssid: options.ssid, passphrase: options.passphrase,
      frequency: options.frequency == 0 ? HostedNetwork.frequencyDefault : options.frequency,
      settings: [
        "sae_password \"\(options.passphrase)\"", "mode 5", "key_mgmt SAE", "ieee80211w 2",
        // All networks of a radio share one beacon interval. Groups use 100 TU (102 ms); wpa_supplicant's default for a
        // mesh is 1000 TU.
        "beacon_int 100", "mesh_fwding \(mesh.isForwarding ? 1 : 0)",
      ],
      interfaceSettings: [
        "max_peer_links \(WiFiDirectSnapshot.stationsMax)"
      ], isRadioShared: mesh.isBesideGroup)
  }
}

/// The options of a mesh.
public struct MeshOptions: Sendable {
  /// Whether the radios of the mesh forward frames for each other, below IP. If false, only radios in range of each
  /// other can communicate.
  public var isForwarding: Bool
  /// Whether the radio also has a Wi-Fi Direct group, on its own interface.
  public var isBesideGroup: Bool

  public init(isForwarding: Bool, isBesideGroup: Bool) {
    self.isForwarding = isForwarding
    self.isBesideGroup = isBesideGroup
  }
}
