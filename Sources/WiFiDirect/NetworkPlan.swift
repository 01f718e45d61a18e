/// What a `HostedNetwork` is like.
struct NetworkPlan {
  enum Kind {
    case accessPoint
    case mesh
  }

  var kind: Kind
  var ssid: String
  var passphrase: String
  /// MHz
  var frequency: UInt16
  /// For SET_NETWORK, besides name and frequency.
  var settings: [String]
  /// For SET, of the interface.
  var interfaceSettings: [String]
  /// Whether the radio's own interface is used by something else.
  var isRadioShared = false

  /// What it is called in messages.
  var noun: StaticString { kind == .mesh ? "mesh" : "access point" }
  /// The interface that is made for it is called so, with the name of the radio's interface.
  var prefix: StaticString { kind == .mesh ? "mesh-" : "ap-" }
  /// The word for it in the answer to STATUS.
  var mode: StaticString { kind == .mesh ? "mesh" : "AP" }
  /// While it is not there.
  var stateBefore: WiFiDirectState { kind == .mesh ? .joining : .creatingGroup }

  /// An ordinary WPA2 network in the place of a group, where the radio or its wpa_supplicant has no Wi-Fi Direct: phones join
  /// it by name and passphrase.
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
        // A radio has one interval for all its networks, and that of groups is 100; wpa_supplicant's default for a mesh is 1000.
        "beacon_int 100", "mesh_fwding \(mesh.isForwarding ? 1 : 0)",
      ],
      interfaceSettings: [
        "max_peer_links \(WiFiDirectSnapshot.stationsMax)"
      ], isRadioShared: mesh.isBesideGroup)
  }
}

/// A mesh in the place of a group.
public struct MeshOptions: Sendable {
  /// Whether the radios forward for each other; otherwise only those in radio range reach each other.
  public var isForwarding: Bool
  /// Whether the radio's own interface has a group, too.
  public var isBesideGroup: Bool

  public init(isForwarding: Bool, isBesideGroup: Bool) {
    self.isForwarding = isForwarding
    self.isBesideGroup = isBesideGroup
  }
}
