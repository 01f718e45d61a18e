import Testing
import Text

private func lines(_ table: TextTable, columns: Int = .max) -> [String] {
  var text = TextBuilder()
  table.write(to: &text, columns: columns)
  return String(decoding: text.bytes, as: UTF8.self).split(separator: "\n").map(String.init)
}

private func example(_ name: String, _ detail: String) -> TextTable {
  var table = TextTable(["NAME", "STATE", "DETAIL"], cuttable: [0])
  table.add([name, "up", detail])
  return table
}

@Test func `a column is as wide as its widest cell`() {
  #expect(lines(example("living room", "eth0")) == ["NAME         STATE  DETAIL", "living room  up     eth0"])
}

@Test func `no spaces follow the last cell with text`() {
  #expect(lines(example("bob", "")).last == "bob   up")
  #expect(lines(example("bob", ""), columns: 30).last == "bob   up")
}

@Test func `the last column is wrapped below itself`() {
  #expect(
    lines(example("bob", "hci0 00:AA:01:00:00:01, psm 193, advertising"), columns: 40) == [
      "NAME  STATE  DETAIL",
      "bob   up     hci0 00:AA:01:00:00:01, psm",
      "             193, advertising",
    ])
}

@Test func `a name is truncated if the last column needs its room`() {
  #expect(
    lines(example("the box in the living room", "up to 64 links"), columns: 40) == [
      "NAME               STATE  DETAIL", "the box in the l…  up     up to 64 links",
    ])
}

@Test func `a name keeps its first seven characters`() {
  let cut = lines(example("bücherwürmer", "eth0"), columns: 10)
  #expect(cut == ["NAME      STATE", "    DETAIL", "bücherw…  up", "    eth0"])
}

@Test func `a last column that would be too narrow is placed below its row`() {
  #expect(
    lines(example("bob", "[fe80::34e4:eeff:feaf:160b%eth0]:60942 (inbound)"), columns: 30) == [
      "NAME  STATE", "    DETAIL", "bob   up", "    [fe80::34e4:eeff:feaf:160b%eth0]:60942", "    (inbound)",
    ])
}

@Test func `an age is shown in its largest unit`() {
  #expect(
    [59, 60, 3_599, 3_600, 86_399, 86_400, 8_640_000].map { ageText($0) } == [
      "59 s", "1 min", "59 min", "1 h", "23 h", "1 d", "100 d",
    ])
}
