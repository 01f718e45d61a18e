import CSystem
import FileSupport
import Testing

@testable import Identity

struct StateDirectoryTests {
  let scratch = Scratch()

  private func directory() throws -> StateDirectory { try StateDirectory(scratch.path) }

  @Test func `a written file is read back, and the previous one is kept`() throws {
    let state = try directory()
    #expect(state.readChecked("state", bytesMax: 100) == .absent)
    try state.writeChecked([1, 2, 3], to: "state")
    try state.writeChecked([4], to: "state")
    #expect(state.readChecked("state", bytesMax: 100) == .current([4]))
    try scratch.remove("state")
    #expect(state.readChecked("state", bytesMax: 100) == .previous([1, 2, 3]))
    #expect(try scratch.mode("state.old") == 0o600)
  }

  @Test func `every changed byte and every truncation is detected`() throws {
    let state = try directory()
    try state.writeChecked([1], to: "state")
    try state.writeChecked([2, 3], to: "state")
    let whole = try #require(scratch.bytes("state"))
    for index in whole.indices {
      var torn = whole
      torn[index] ^= 0x10
      for bytes in [torn, Array(whole[..<index])] {
        try scratch.write("state", bytes)
        #expect(state.readChecked("state", bytesMax: 100) == .previous([1]))
      }
    }
    try scratch.write("state.old", [])
    #expect(state.readChecked("state", bytesMax: 100) == .lost)
  }

  @Test func `a crash after any system call leaves the old or the new file`() throws {
    var outcomes: [StateDirectory.Checked] = []
    for steps in CInt(0)..<40 {
      let state = try directory()
      try state.writeChecked([1], to: "state")
      try state.writeChecked([2], to: "state")
      state.stepsLeft = steps
      let isDone = (try? state.writeChecked([3], to: "state")) != nil
      let found = try directory().readChecked("state", bytesMax: 100)
      #expect(found == .current([2]) || found == .current([3]))
      #expect(!isDone || found == .current([3]))
      outcomes.append(found)
      // The files that an interrupted write leaves do not disturb the next write.
      try directory().writeChecked([4], to: "state")
      #expect(try directory().readChecked("state", bytesMax: 100) == .current([4]))
      if isDone { break }
    }
    #expect(outcomes.first == .current([2]))
    #expect(outcomes.last == .current([3]))
    #expect(outcomes.count == 11)
  }

  @Test func `the lock has one holder at a time`() throws {
    var first: StateDirectory? = try directory()
    let second = try directory()
    #expect(try first!.lock())
    #expect(try first!.lock())
    #expect(try !second.lock())
    first = nil
    #expect(try second.lock())
  }

  @Test func `a write in the background has the same result as one in the foreground`() throws {
    let state = try directory()
    let writer = try #require(StateWriter(state, file: "state"))
    for number in UInt8(1)...5 {
      #expect(writer.begin([number]) && writer.isBusy)
      var polled = pollfd(fd: writer.descriptor, events: Int16(POLLIN), revents: 0)
      #expect(poll(&polled, 1, 10_000) == 1)
      try writer.end()
      #expect(!writer.isBusy && state.readChecked("state", bytesMax: 100) == .current([number]))
    }
    #expect(mkdir(scratch.file("state.new"), 0o700) == 0)
    #expect(writer.begin([6]))
    #expect(throws: IdentityError.unwritable(path: scratch.file("state"), code: EEXIST)) { try writer.end() }
    #expect(rmdir(scratch.file("state.new")) == 0)
    #expect(state.readChecked("state", bytesMax: 100) == .current([5]))
  }

  @Test func `a full disk is an error, and the old file stays`() throws {
    let state = try directory()
    try state.writeChecked([1], to: "state")
    // Three steps succeed: the step for the directory, the removal of a leftover file, and the open of the new file.
    // The write fails.
    state.stepsLeft = 3
    #expect(throws: IdentityError.unwritable(path: scratch.file("state"), code: EIO)) {
      try state.writeChecked([2], to: "state")
    }
    #expect(state.readChecked("state", bytesMax: 100) == .current([1]))
  }
}
