import Frame
import FuzzSupport
import Primitives
import Session
import SessionSupport
import TestSupport

/// Decodes any bytes as a signed advertisement, and as the body of each kind of advertisement. Reads every value of a
/// decoded view.
func fuzzAdvertisements(_ input: UnsafeRawBufferPointer) {
  let bytes = input.bytes
  if let view = try? AdvertisementView(bytes) {
    expect(view.signed.byteCount + view.signature.byteCount == input.count, "bytes outside of signed and signature")
    switch view.kind {
    case .topology: readTopology(view.body)
    case .profile: readProfile(view.body)
    case .services: readServices(view.body)
    }
  }
  readTopology(bytes)
  readProfile(bytes)
  readServices(bytes)
}

private func readTopology(_ body: RawSpan) {
  guard let view = try? TopologyView(body) else { return }
  var neighbours: [Neighbour] = []
  for index in 0..<view.count {
    guard let neighbour = try? view.entry(index) else { fatalError("a view that was made throws") }
    neighbours.append(neighbour)
  }
  let written = encoded { output in
    TopologyView.writeHead(flags: view.flags, count: view.count, to: &output)
    for neighbour in neighbours { neighbour.write(to: &output) }
  }
  if written != body.array { fatalError("a topology is written otherwise than it was read") }
}

private func readServices(_ body: RawSpan) {
  guard (try? ServicesView(body)) != nil else { return }
  if Service.advertisementBody(Service.all(in: body.array)) != body.array, body.byteCount <= Advertisement.bodyBytesMax
  {
    fatalError("services are written otherwise than they were read")
  }
}

private func readProfile(_ body: RawSpan) {
  guard let view = try? ProfileView(body) else { return }
  var pairs: [[UInt8]] = []
  view.info.forEach { pairs.append($0.array) }
  if pairs.count != view.info.count { fatalError("a view that was made loses pairs") }
  let name = (0..<view.name.byteCount).map { view.name.byte($0) }
  if profileBody(name: name, service: view.serviceType.array, pairs: pairs) != body.array {
    fatalError("a profile is written otherwise than it was read")
  }
  if String(validating: name, as: UTF8.self) == nil { fatalError("a display name that is no UTF-8") }
}
