import Glibc
import Testing

@testable import Causeway

/// The packets of vectors.txt by name. The daemon's tests read the same file, but the library and the daemon have
/// independent codecs.
let vectors: [String: [UInt8]] = {
  let path = "\(#filePath)".replacing("CausewayTests/Vectors.swift", with: "LocalAPITests/vectors.txt")
  guard let file = fopen(path, "r") else { fatalError("no \(path)") }
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 65_536)
  let count = fread(&bytes, 1, bytes.count, file)
  var vectors: [String: [UInt8]] = [:]
  for line in String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n") where !line.hasPrefix("#") {
    let words = line.split(separator: " ", maxSplits: 1)
    let digits = Array(words[1].utf8)
    vectors[String(words[0])] = stride(from: 0, to: digits.count - 1, by: 2).map {
      UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)!
    }
  }
  return vectors
}()

let address = Address("00112233445566778899aabbccddeeff/0a0b0c0d")!
let bob = Peer(name: "bob", hops: 2, isVerified: true)

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// Four bytes, big-endian.
func word(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> UInt32(24 - 8 * $0)) } }

/// A packet from the daemon, preceded by its length.
func packet(_ type: UInt8, _ number: UInt32, _ fields: (inout PacketWriter) -> Void = { _ in }) -> [UInt8] {
  var writer = PacketWriter(type: type, number: number)
  fields(&writer)
  return writer.finished()
}

func member(_ state: Member.State, _ address: Address = address) -> Member {
  Member(address: address, peer: bob, state: state)
}

/// The event that reports the state of a member. `reason` states why the member left, 0 if it has not left.
func memberPacket(_ session: UInt32, _ address: Address, _ state: UInt8, _ reason: UInt8 = 0) -> [UInt8] {
  packet(136, session) {
    $0.put(address)
    $0.put([2, 1])
    $0.put("bob")
    $0.put([state, reason, 0])
  }
}

func messagePacket(_ session: UInt32, _ address: Address, _ message: [UInt8]) -> [UInt8] {
  packet(137, session) {
    $0.put(address)
    $0.put([0])
    $0.put(UInt64(message.count), count: 4)
    $0.put(message)
  }
}

func streamPacket(_ session: UInt32, _ received: UInt32, _ address: Address, _ name: String = "log") -> [UInt8] {
  packet(140, session) {
    $0.put(UInt64(received), count: 4)
    $0.put(address)
    $0.put(name)
  }
}

func streamBytesPacket(_ stream: UInt32, _ bytes: [UInt8]) -> [UInt8] {
  packet(141, stream) {
    $0.put(UInt64(bytes.count), count: 4)
    $0.put(bytes)
  }
}

func streamRoomPacket(_ stream: UInt32, _ limit: UInt64) -> [UInt8] {
  packet(142, stream) { $0.put(limit, count: 8) }
}

func streamEndedPacket(_ object: UInt32, _ received: UInt32, _ end: UInt8) -> [UInt8] {
  packet(143, object) {
    $0.put(UInt64(received), count: 4)
    $0.put([end])
  }
}

extension Address {
  var bytes: [UInt8] { Array(packet(139, 1) { $0.put(self) }.dropFirst(9)) }

  static func numbered(_ number: Int) -> Address {
    Address(node: NodeID(high: 7, low: UInt64(number)), endpoint: 1)
  }
}

func service(_ address: Address, _ info: [String: String] = [:]) -> Service {
  Service(address: address, peer: bob, info: info)
}
