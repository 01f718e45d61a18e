// swift-tools-version: 6.2
import PackageDescription

// The core modules, their tests and the simulator alone: what mutate.py builds, once for each mutation.
let language: [SwiftSetting] = [.swiftLanguageMode(.v6), .enableExperimentalFeature("Lifetimes")]

func core(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: language)
}
func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: language)
}
let all: [Target.Dependency] = ["Primitives", "Journal", "Frame", "Link", "Mesh", "Channel", "Seal", "Session", "LocalAPI", "Node", "TestSupport"]

let package = Package(
  name: "core",
  targets: [
    core("Primitives"),
    core("Journal", ["Primitives"]),
    core("Frame", ["Primitives"]),
    core("Link", ["Primitives", "Frame"]),
    core("Mesh", ["Primitives", "Frame"]),
    core("Channel", ["Primitives", "Frame"]),
    core("Seal", ["Primitives", "Frame"]),
    core("Session", ["Primitives", "Frame", "Channel"]),
    core("LocalAPI", ["Primitives", "Channel", "Session"]),
    core("Node", ["Primitives", "Journal", "Frame", "Link", "Mesh", "Channel", "Seal", "Session"]),
    .target(name: "TestSupport", dependencies: ["Primitives", "Frame", "Channel", "Seal", "Session", "LocalAPI", "Node"], path: "Tests/Support", swiftSettings: language),
    .target(name: "SessionStories", dependencies: all, path: "Tests/SessionStories", swiftSettings: language),
    .target(name: "Simulator", dependencies: all, path: "Tests/Simulator", swiftSettings: language),
    .executableTarget(name: "simulate", dependencies: ["Simulator", "SessionStories"], path: "Tests/Simulate", exclude: ["run.py"], swiftSettings: language),
    tests("PrimitivesTests", all), tests("FrameTests", all), tests("LinkTests", all), tests("MeshTests", all),
    tests("ChannelTests", all), tests("SealTests", all), tests("SessionTests", all + ["SessionStories"]), tests("NodeTests", all),
    // Golden bytes are read from a file, by the C library's headers.
    .testTarget(name: "LocalAPITests", dependencies: all, exclude: ["CodecTests.swift", "vectors.txt"], swiftSettings: language),
  ])
