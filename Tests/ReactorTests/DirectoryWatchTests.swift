import CSystem
import Foundation
import LoopSupport
import Primitives
import Reactor
import Testing

@Suite struct DirectoryWatchTests {
  private let root = FileManager.default.temporaryDirectory.appending(path: "watch-\(UUID())")
  private let loop: EventLoop

  init() throws {
    loop = try EventLoop()
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
  }

  private func make(_ path: String) throws {
    try FileManager.default.createDirectory(at: root.appending(path: path), withIntermediateDirectories: false)
  }

  /// The number of times that a watch on `path` calls its closure during `change`.
  private func calls(_ path: String, _ change: () throws -> Void) throws -> Int {
    var calls = 0
    let watch = try DirectoryWatch(loop, root.appending(path: path).path) { calls += 1 }
    defer { watch.stop() }
    loop.turn(waitMilliseconds: 0)
    #expect(calls == 0)
    try change()
    loop.turn(waitMilliseconds: 0)
    return calls
  }

  @Test func `a new entry in a directory is reported`() throws {
    #expect(try calls("") { try make("a") } == 1)
  }

  @Test func `a directory is watched as soon as it appears`() throws {
    let count = try calls("a/b") {
      try make("a")
      loop.turn(waitMilliseconds: 0)
      try make("a/b")
      loop.turn(waitMilliseconds: 0)
      try make("a/b/c")
    }
    #expect(count == 3)
  }

  @Test func `a removed directory is watched again when it returns`() throws {
    try make("a")
    let count = try calls("a") {
      try FileManager.default.removeItem(at: root.appending(path: "a"))
      loop.turn(waitMilliseconds: 0)
      try make("a")
      loop.turn(waitMilliseconds: 0)
      try make("a/b")
    }
    #expect(count == 3)
  }

  @Test func `a changed permission is reported`() throws {
    try make("a")
    #expect(try calls("") { try #require(chmod(root.appending(path: "a").path, 0o700) == 0) } == 1)
  }

  @Test func `nothing is reported after stop`() throws {
    var calls = 0
    let watch = try DirectoryWatch(loop, root.path) { calls += 1 }
    watch.stop()
    try make("a")
    loop.turn(waitMilliseconds: 0)
    #expect(calls == 0)
  }
}
