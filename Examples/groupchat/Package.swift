// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "groupchat",
  dependencies: [
    // Outside this repository: .package(url: "…/causeway.git", from: "0.1.0")
    .package(name: "causeway", path: "../.."),
  ],
  targets: [
    .executableTarget(
      name: "groupchat", dependencies: [.product(name: "Causeway", package: "causeway")], path: "Sources"),
  ]
)
