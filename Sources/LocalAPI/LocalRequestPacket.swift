import Primitives
import Session

/// A client's direction: what `LocalRequest.init` reads.
extension LocalRequest {
  /// The packet, with its length. Texts have at most 255 bytes.
  public var packet: [UInt8] {
    var bytes: [UInt8] = []
    func begin(_ type: UInt8) {
      bytes.append(type)
      bytes.append(bigEndian: number)
    }
    switch body {
    case .hello(let least, let most, let instance):
      begin(1)
      bytes.append(bigEndian: least)
      bytes.append(bigEndian: most)
      bytes.append(text: instance)
    case .advertise(let type, let info):
      begin(2)
      bytes.append(text: type)
      bytes.append(UInt8(info.count))
      for pair in info { bytes.append(text: pair) }
    case .browse(let type):
      begin(3)
      bytes.append(text: type)
    case .open(let type, let rules, let judges):
      begin(4)
      bytes.append(text: type)
      bytes.append(rules: rules)
      if judges { bytes.append(1) }
    case .close(let object):
      begin(5)
      bytes.append(bigEndian: object)
    case .invite(let session, let to, let milliseconds, let context):
      begin(6)
      bytes.append(bigEndian: session)
      bytes.append(address: to)
      bytes.append(bigEndian: milliseconds)
      bytes.append(bigEndian: UInt16(context.count))
      bytes += context
    case .cancel(let invitation):
      begin(7)
      bytes.append(bigEndian: invitation)
    case .answer(let invitation, let session, let explanation):
      begin(8)
      bytes.append(bigEndian: invitation)
      bytes.append(bigEndian: session)
      bytes.append(text: explanation)
    case .leave(let session, let farewell):
      begin(9)
      bytes.append(bigEndian: session)
      bytes.append(text: farewell)
    case .send(let session, let mode, let to, let data):
      begin(10)
      bytes.append(bigEndian: session)
      bytes += [mode.rawValue, UInt8(to.count)]
      for member in to { bytes.append(address: member) }
      bytes.append(bigEndian: UInt32(data.count))
      bytes += data
    case .window(let session, let limit):
      begin(11)
      bytes.append(bigEndian: session)
      bytes.append(bigEndian: limit)
    case .gather(let session):
      begin(12)
      bytes.append(bigEndian: session)
    case .stream(let session, let to, let name):
      begin(13)
      bytes.append(bigEndian: session)
      bytes.append(address: to)
      bytes.append(text: name)
    case .take(let stream, let isWanted, let limit):
      begin(14)
      bytes.append(bigEndian: stream)
      bytes.append(isWanted ? 1 : 0)
      bytes.append(bigEndian: limit)
    case .write(let stream, let data):
      begin(15)
      bytes.append(bigEndian: stream)
      bytes.append(bigEndian: UInt32(data.count))
      bytes += data
    case .streamWindow(let stream, let limit):
      begin(16)
      bytes.append(bigEndian: stream)
      bytes.append(bigEndian: limit)
    case .finish(let stream):
      begin(17)
      bytes.append(bigEndian: stream)
    case .reset(let stream):
      begin(18)
      bytes.append(bigEndian: stream)
    case .eject(let session, let member, let farewell):
      begin(19)
      bytes.append(bigEndian: session)
      bytes.append(address: member)
      bytes.append(text: farewell)
    case .decide(let session, let member, let accepts):
      begin(20)
      bytes.append(bigEndian: session)
      bytes.append(address: member)
      bytes.append(accepts ? 1 : 0)
    }
    var packet: [UInt8] = []
    packet.append(bigEndian: UInt32(bytes.count))
    return packet + bytes
  }
}
