import Frame
import Primitives
import TestSupport
import Testing

@Test func fieldsAreReadInOrderAndBigEndian() throws {
  let bytes = hex("01 0203 04050607 08090a0b0c0d0e0f 101112131415161718191a1b1c1d1e1f aabb")
  var reader = ByteReader(bytes.span.bytes)
  let byte = try reader.u8()
  let short = try reader.u16()
  let word = try reader.u32()
  let long = try reader.u64()
  let node = try reader.nodeID()
  let span = try reader.span(2).array
  #expect(byte == 1 && short == 0x0203 && word == 0x0405_0607 && long == 0x0809_0a0b_0c0d_0e0f)
  #expect(node == NodeID(high: 0x1011_1213_1415_1617, low: 0x1819_1a1b_1c1d_1e1f) && span == [0xaa, 0xbb])
  #expect(reader.remaining == 0)
}

@Test func aFieldThatIsNotAllThereLeavesTheReaderWhereItWas() throws {
  let bytes = hex("010203")
  var reader = ByteReader(bytes.span.bytes)
  _ = try reader.u8()
  var reasons: [FrameRefusal?] = []
  do { _ = try reader.u32() } catch { reasons.append(error) }
  do { _ = try reader.u64() } catch { reasons.append(error) }
  do { _ = try reader.nodeID() } catch { reasons.append(error) }
  do { _ = try reader.span(3) } catch { reasons.append(error) }
  do { _ = try reader.span(-1) } catch { reasons.append(error) }
  let rest = try reader.u16()
  do { _ = try reader.u8() } catch { reasons.append(error) }
  do { _ = try reader.u16() } catch { reasons.append(error) }
  #expect(rest == 0x0203)
  #expect(reasons == [FrameRefusal?](repeating: .truncated, count: 7))
}

@Test func writtenFieldsAreBigEndian() {
  let bytes = encoded { output in
    output.append(bigEndian: UInt16(0x0102))
    output.append(bigEndian: UInt32(0x0304_0506))
    output.append(bigEndian: UInt64(0x0708_090a_0b0c_0d0e))
    output.append(NodeID(high: 1, low: 2))
  }
  #expect(bytes == hex("0102 03040506 0708090a0b0c0d0e 0000000000000001 0000000000000002"))
}
