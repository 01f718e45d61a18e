import Primitives
import TestSupport
import Testing

private enum Fault: Error { case short }

@Test func `fields are read in order and in big-endian order`() throws {
  let bytes = hex("01 0203 04050607 08090a0b0c0d0e0f 101112131415161718191a1b1c1d1e1f aabb ccdd")
  var reader = ByteReader(bytes.span.bytes, orThrow: Fault.short)
  let byte = try reader.u8()
  let short = try reader.u16()
  let word = try reader.u32()
  let long = try reader.u64()
  let node = try reader.nodeID()
  let span = try reader.span(2).array
  let array = try reader.array(2)
  #expect(byte == 1 && short == 0x0203 && word == 0x0405_0607 && long == 0x0809_0a0b_0c0d_0e0f)
  #expect(node == NodeID(high: 0x1011_1213_1415_1617, low: 0x1819_1a1b_1c1d_1e1f))
  #expect(span == [0xaa, 0xbb] && array == [0xcc, 0xdd])
  #expect(reader.remaining == 0)
}

@Test func `fields of Bluetooth are read in little-endian order`() throws {
  let bytes = hex("0201 06050403")
  var reader = ByteReader(bytes.span.bytes, orThrow: Fault.short)
  let short = try reader.u16le()
  let word = try reader.u32le()
  #expect(short == 0x0102 && word == 0x0304_0506)
}

@Test func `an incomplete field does not move the reader`() throws {
  let bytes = hex("010203")
  var reader = ByteReader(bytes.span.bytes, orThrow: Fault.short)
  _ = try reader.u8()
  var faults: [Fault] = []
  do { _ = try reader.u32() } catch { faults.append(error) }
  do { _ = try reader.u32le() } catch { faults.append(error) }
  do { _ = try reader.u64() } catch { faults.append(error) }
  do { _ = try reader.nodeID() } catch { faults.append(error) }
  do { _ = try reader.span(3) } catch { faults.append(error) }
  do { _ = try reader.array(3) } catch { faults.append(error) }
  do { _ = try reader.span(-1) } catch { faults.append(error) }
  let rest = try reader.u16()
  do { _ = try reader.u8() } catch { faults.append(error) }
  do { _ = try reader.u16le() } catch { faults.append(error) }
  #expect(rest == 0x0203)
  #expect(faults == [Fault](repeating: .short, count: 9))
}

@Test func `fields are written as they are read`() {
  let wanted = hex("0102 03040506 0708090a0b0c0d0e 0000000000000001 0000000000000002")
  let fixed = encoded { output in
    output.append(bigEndian: UInt16(0x0102))
    output.append(bigEndian: UInt32(0x0304_0506))
    output.append(bigEndian: UInt64(0x0708_090a_0b0c_0d0e))
    output.append(NodeID(high: 1, low: 2))
  }
  var growing: [UInt8] = []
  growing.append(bigEndian: UInt16(0x0102))
  growing.append(bigEndian: UInt32(0x0304_0506))
  growing.append(bigEndian: UInt64(0x0708_090a_0b0c_0d0e))
  growing.append(NodeID(high: 1, low: 2))
  #expect(fixed == wanted)
  #expect(growing == wanted)
}

@Test func `fields of Bluetooth are written in little-endian order`() {
  var bytes: [UInt8] = []
  bytes.append(littleEndian: UInt16(0x0102))
  bytes.append(littleEndian: UInt32(0x0304_0506))
  #expect(bytes == hex("0201 06050403"))
}

@Test func `fields are written from the start of a buffer, and later bytes are unchanged`() {
  var bytes: [UInt8] = [9, 9, 9, 9]
  bytes.withUnsafeMutableBytes { buffer in
    buffer.write { output in output.append(bigEndian: UInt16(0x0102)) }
  }
  #expect(bytes == [1, 2, 9, 9])
}
