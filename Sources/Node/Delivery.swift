import Frame
import Mesh
import Primitives

struct Delivery {
  init(epoch: UInt64) {}
  var deadline: Instant { .never }
  mutating func routesChanged(_ mesh: borrowing Mesh, _ directory: Directory, now: Instant) {}
  mutating func handleTimeouts(now: Instant) {}
}
extension Node {
  func deliver(_ header: FrameHeader, _ type: FrameType, _ payload: RawSpan, _ now: Instant) throws(FrameRefusal) {}
  func pumpDelivery(_ now: Instant) {}
}
