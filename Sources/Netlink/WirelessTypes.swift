import CSystem
import Primitives
import Reactor

/// Queries nl80211, the kernel's configuration of Wi-Fi, about interfaces. Unlike /sys, nl80211 answers for this
/// process's network namespace.
public struct WirelessTypes {
  private let socket: NetlinkSocket
  private let family: UInt16

  /// Returns nil if the kernel has no nl80211, because there is no Wi-Fi radio or no driver for one.
  public init?() {
    guard let socket = try? NetlinkSocket(NETLINK_GENERIC) else { return nil }
    var question = NetlinkMessage(UInt16(GENL_ID_CTRL), 0)
    question.append(genericHeader: UInt8(CTRL_CMD_GETFAMILY), version: 1)
    question.append(attribute: UInt16(CTRL_ATTR_FAMILY_NAME), "nl80211")
    guard let reply = try? socket.request(question),
      let id = reply.attribute(UInt16(CTRL_ATTR_FAMILY_ID), from: 4), id.count == 2
    else {
      socket.close()
      return nil
    }
    self.socket = socket
    family = id.native(id.startIndex, as: UInt16.self)
  }

  public func close() { socket.close() }

  /// The country whose radio regulations apply: two characters, or “00” if no country is set (Linux,
  /// Documentation/networking/regulatory.rst).
  var regulatoryDomain: String? {
    var question = NetlinkMessage(family, 0)
    question.append(genericHeader: UInt8(NL80211_CMD_GET_REG.rawValue), version: 0)
    guard let reply = try? socket.request(question),
      let code = reply.attribute(UInt16(NL80211_ATTR_REG_ALPHA2.rawValue), from: 4)
    else { return nil }
    return String(decoding: code.prefix { $0 != 0 }, as: UTF8.self)
  }

  /// The abilities of the interface's driver; nil if the interface is not wireless.
  func abilities(_ interfaceIndex: UInt32) -> WirelessAbilities? {
    var question = NetlinkMessage(family, 0)
    question.append(genericHeader: UInt8(NL80211_CMD_GET_WIPHY.rawValue), version: 0)
    question.append(attribute: UInt16(NL80211_ATTR_IFINDEX.rawValue), interfaceIndex)
    guard let reply = try? socket.request(question),
      let types = reply.attribute(UInt16(NL80211_ATTR_SUPPORTED_IFTYPES.rawValue), from: 4)
    else { return nil }
    // The attribute is nested: it contains one empty attribute for each supported type.
    let supported = NetlinkReply(type: 0, payload: types)
    func canBe(_ type: nl80211_iftype) -> Bool { supported.attribute(UInt16(type.rawValue), from: 0) != nil }
    let stations = reply.attribute(UInt16(NL80211_ATTR_MAX_AP_ASSOC_STA.rawValue), from: 4)
    return WirelessAbilities(
      canBeGroupOwner: canBe(NL80211_IFTYPE_P2P_GO), canBeGroupClient: canBe(NL80211_IFTYPE_P2P_CLIENT),
      canBeMeshPoint: canBe(NL80211_IFTYPE_MESH_POINT),
      stationsMax: stations.flatMap { $0.count == 2 ? $0.native($0.startIndex, as: UInt16.self) : nil })
  }

  /// The bearer of an interface, Wi-Fi or Wi-Fi Direct; nil if the interface is not wireless.
  public func kind(_ interfaceIndex: UInt32) -> BearerKind? {
    var question = NetlinkMessage(family, 0)
    question.append(genericHeader: UInt8(NL80211_CMD_GET_INTERFACE.rawValue), version: 0)
    question.append(attribute: UInt16(NL80211_ATTR_IFINDEX.rawValue), interfaceIndex)
    guard let reply = try? socket.request(question),
      let type = reply.attribute(UInt16(NL80211_ATTR_IFTYPE.rawValue), from: 4), type.count == 4
    else { return nil }
    switch type.native(type.startIndex, as: UInt32.self) {
    case NL80211_IFTYPE_P2P_CLIENT.rawValue, NL80211_IFTYPE_P2P_GO.rawValue: return .wifiDirect
    default: return .wifi
    }
  }
}

/// The country whose radio regulations apply to this machine: two characters, or “00” if no country is set. Nil without
/// a radio.
public func regulatoryDomain() -> String? {
  guard let types = WirelessTypes() else { return nil }
  defer { types.close() }
  return types.regulatoryDomain
}

/// The abilities of a wireless interface's driver.
public struct WirelessAbilities: Equatable, Sendable {
  public var canBeGroupOwner: Bool
  public var canBeGroupClient: Bool
  public var canBeMeshPoint: Bool
  /// How many stations may join at once; nil if the driver does not report this number.
  public var stationsMax: UInt16?

  public init(canBeGroupOwner: Bool, canBeGroupClient: Bool, canBeMeshPoint: Bool, stationsMax: UInt16?) {
    self.canBeGroupOwner = canBeGroupOwner
    self.canBeGroupClient = canBeGroupClient
    self.canBeMeshPoint = canBeMeshPoint
    self.stationsMax = stationsMax
  }
}

/// The abilities of an interface's driver; nil if the interface does not exist or is not wireless.
public func wirelessAbilities(of interface: String) -> WirelessAbilities? {
  let index = if_nametoindex(interface)
  guard index != 0, let types = WirelessTypes() else { return nil }
  defer { types.close() }
  return types.abilities(index)
}

extension NetlinkMessage {
  /// Appends a genlmsghdr, the header of generic netlink.
  fileprivate mutating func append(genericHeader command: UInt8, version: UInt8) {
    append(command)
    append(version)
    append(UInt16(0))
  }
}
