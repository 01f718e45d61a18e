import Primitives
import Session

/// The serializer of a client for the packets that `LocalRequest.init` parses.
extension LocalRequest {
  /// The packet with its length field. Each text in a packet must have at most 255 bytes.
  public var packet: [UInt8] {
    var bytes: [UInt8] = [0, 0, 0, 0]
    // Local functions avoid repeating the code that writes each kind of field.
    func word(_ value: UInt32) { bytes.append(bigEndian: value) }
    func long(_ value: UInt64) {
      word(UInt32(truncatingIfNeeded: value >> 32))
      word(UInt32(truncatingIfNeeded: value))
    }
    func text(_ text: [UInt8]) { bytes.append(text: text) }
    func address(_ address: MemberAddress) { bytes.append(address: address) }
    func begin(_ type: UInt8) {
      bytes.append(type)
      word(number)
    }
    switch body {
    case .hello(let least, let most, let instance):
      begin(1)
      bytes.append(bigEndian: least)
      bytes.append(bigEndian: most)
      text(instance)
    case .advertise(let type, let info):
      begin(2)
      text(type)
      bytes.append(UInt8(info.count))
      for pair in info { text(pair) }
    case .browse(let type):
      begin(3)
      text(type)
    case .open(let type, let rules, let decidesOnMembers):
      begin(4)
      text(type)
      bytes.append(rules: rules)
      if decidesOnMembers { bytes.append(1) }
    case .close(let object):
      begin(5)
      word(object)
    case .invite(let session, let to, let milliseconds, let context):
      begin(6)
      word(session)
      address(to)
      word(milliseconds)
      bytes.append(bigEndian: UInt16(context.count))
      bytes.append(copying: context)
    case .cancel(let invitation):
      begin(7)
      word(invitation)
    case .answer(let invitation, let session, let explanation):
      begin(8)
      word(invitation)
      word(session)
      text(explanation)
    case .leave(let session, let farewell):
      begin(9)
      word(session)
      text(farewell)
    case .send(let session, let mode, let to, let data):
      begin(10)
      word(session)
      bytes += [mode.rawValue, UInt8(to.count)]
      for member in to { address(member) }
      word(UInt32(data.count))
      bytes.append(copying: data)
    case .window(let session, let limit):
      begin(11)
      word(session)
      long(limit)
    case .gather(let session):
      begin(12)
      word(session)
    case .stream(let session, let to, let name):
      begin(13)
      word(session)
      address(to)
      text(name)
    case .take(let stream, let isWanted, let limit, let isPostponed):
      begin(14)
      word(stream)
      bytes.append(isWanted ? 1 : 0)
      long(limit)
      if isPostponed { bytes.append(1) }
    case .write(let stream, let data):
      var bytes: [UInt8] = []
      bytes.append(writing: data.span.bytes, to: stream, number: number)
      return bytes
    case .streamWindow(let stream, let limit):
      begin(16)
      word(stream)
      long(limit)
    case .finish(let stream):
      begin(17)
      word(stream)
    case .reset(let stream, let isPostponed):
      begin(18)
      word(stream)
      if isPostponed { bytes.append(1) }
    case .eject(let session, let member, let farewell):
      begin(19)
      word(session)
      address(member)
      text(farewell)
    case .decide(let session, let member, let accepts):
      begin(20)
      word(session)
      address(member)
      bytes.append(accepts ? 1 : 0)
    case .connect(let session, let to, let milliseconds):
      begin(21)
      word(session)
      address(to)
      word(milliseconds)
    }
    bytes.setPacketLength()
    return bytes
  }
}

extension [UInt8] {
  /// Appends the packet of a `write` request. A client that sends much sends mostly `write` requests, so the data is
  /// copied only once.
  public mutating func append(writing data: RawSpan, to stream: UInt32, number: UInt32 = 0) {
    var head: [UInt8] = []
    head.append(bigEndian: UInt32(13 + data.byteCount))
    head.append(15)
    head.append(bigEndian: number)
    head.append(bigEndian: stream)
    head.append(bigEndian: UInt32(data.byteCount))
    append(copying: head)
    append(copying: data)
  }
}
