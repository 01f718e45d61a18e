import Frame
import Primitives

/// A service of an application. Other applications find the service and invite its application into sessions.
public struct Service: Equatable, Sendable {
  /// Identifies the service on its node; see `MemberAddress.endpoint`.
  public var endpoint: UInt32
  /// The type of the service; see `isServiceType`.
  public var type: [UInt8]
  /// The discovery info: `key=value` pairs, see `isInfoPair`.
  public var info: [[UInt8]]

  public init(endpoint: UInt32, type: [UInt8], info: [[UInt8]] = []) {
    self.endpoint = endpoint
    self.type = type
    self.info = info
  }

  /// The size of the service in an advertisement, in bytes.
  public var byteCount: Int { 4 + 1 + type.count + 1 + 2 + info.reduce(0) { $0 + 1 + $1.count } }

  init(_ view: borrowing ServiceView) {
    endpoint = view.endpoint
    type = [UInt8](copying: view.type)
    var pairs: [[UInt8]] = []
    view.info.forEach { pairs.append([UInt8](copying: $0)) }
    info = pairs
  }

  /// The services in the body of an advertisement; empty if the body is not valid.
  public static func all(in body: [UInt8]) -> [Service] {
    guard let view = try? ServicesView(body.span.bytes) else { return [] }
    var services: [Service] = []
    view.forEach { services.append(Service($0)) }
    return services
  }

  /// The body of an advertisement, in the format of `ServicesView`; nil if the services are not valid or do not fit.
  public static func advertisementBody(_ services: [Service]) -> [UInt8]? {
    guard services.count <= Limits.servicesMax else { return nil }
    var body = [UInt8(services.count)]
    for service in services.inOrder({ $0.endpoint < $1.endpoint }) {
      guard service.type.count <= Limits.serviceTypeBytesMax, service.info.count <= Limits.infoPairsMax,
        service.info.allSatisfy({ $0.count <= Limits.infoPairBytesMax })
      else { return nil }
      body.append(bigEndian: service.endpoint)
      body.append(UInt8(service.type.count))
      body += service.type
      body.append(UInt8(service.info.count))
      body.append(bigEndian: UInt16(service.info.reduce(0) { $0 + 1 + $1.count }))
      for pair in service.info {
        body.append(UInt8(pair.count))
        body += pair
      }
    }
    guard body.count <= Advertisement.bodyBytesMax, (try? ServicesView(body.span.bytes)) != nil else { return nil }
    return body
  }
}
