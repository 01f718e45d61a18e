// swift-tools-version: 6.2
import PackageDescription

// The same sources are built twice: as Embedded Swift for the firmware, and as normal Swift for tests, sanitizers and
// fuzzers. For the firmware, board/build/swift.sh sets CAUSEWAY_EMBEDDED=1 and passes the toolset of a sysroot.
let embedded = Context.environment["CAUSEWAY_EMBEDDED"] == "1"
/// Selects the development firmware, which is not optimised, takes less time to build, and is never shipped.
let development = Context.environment["CAUSEWAY_DEVELOPMENT"] == "1"

// Tests/Fuzz/run.sh sets CAUSEWAY_FUZZ=1 to build the fuzz targets with libFuzzer.
let fuzzing = Context.environment["CAUSEWAY_FUZZ"] == "1"

let language: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableExperimentalFeature("Lifetimes"),
]
let mode: [SwiftSetting] = embedded
  ? [
    .enableExperimentalFeature("Embedded"),
    .unsafeFlags(["-wmo", development ? "-Onone" : "-Osize"]),
  ]
  : []
/// Settings for modules that are compiled for speed: those that every forwarded frame runs, and those that grow little
/// when optimised. All other modules are compiled for size. If the arguments contain `-Osize` and then `-O`, the
/// compiler uses the last.
let fast: [SwiftSetting] = embedded && !development ? [.unsafeFlags(["-O"])] : []
/// Settings for modules of the forwarding path: the compiler rejects every heap allocation in such a module.
let allocationFree: [SwiftSetting] = embedded && !development ? [.unsafeFlags(["-no-allocations"])] : []

/// Enables a planted bug that a review would miss, to test whether the simulation finds the bug. The firmware never
/// contains the bug.
let planted: [SwiftSetting] =
  Context.environment["CAUSEWAY_PLANTED_BUG"] == "1" && !embedded ? [.define("PLANTED_BUG")] : []

/// Core, simulator and channel tests are optimised even in debug builds, because they simulate hours of traffic. The
/// checks of pointers, indices and overflows of a debug build remain enabled.
let optimisedAndChecked: [SwiftSetting] =
  embedded ? [] : [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]

/// Redirects calls inside libraries to replacement functions of this package.
func wrapped(_ calls: [String]) -> LinkerSetting { .unsafeFlags(calls.flatMap { ["-Xlinker", "--wrap=" + $0] }) }
let wrappedByCAvahi = wrapped(
  [
    "dbus_connection_send_with_reply_and_block", "avahi_response_scheduler_suppress", "avahi_domain_equal",
    "avahi_cache_start_poof", "avahi_cache_stop_poof", "avahi_interface_post_query", "avahi_querier_free_all",
  ])

func core(_ name: String, _ dependencies: [Target.Dependency] = [], allocates: Bool = true, forwards: Bool = false) -> Target {
  .target(name: name, dependencies: dependencies,
    swiftSettings: language + mode + optimisedAndChecked + planted + (forwards || !allocates ? fast : [])
      + (allocates ? [] : allocationFree))
}
func rim(_ name: String, _ dependencies: [Target.Dependency], forwards: Bool = false) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: language + mode + (forwards ? fast : []))
}
func tests(_ name: String, _ dependencies: [Target.Dependency], _ mode: [SwiftSetting] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: language + mode)
}
func support(_ name: String, _ dependencies: [Target.Dependency], path: String? = nil) -> Target {
  .target(name: name, dependencies: dependencies, path: path ?? "Tests/" + name, swiftSettings: language + optimisedAndChecked)
}
/// Settings for tests of faults that only the optimiser can introduce.
let optimised: [SwiftSetting] = [.unsafeFlags(["-O"])]


let package = Package(
  name: "causeway",
  products: [.executable(name: "causeway", targets: ["Program"])]
    + (embedded ? [] : [.library(name: "Causeway", targets: ["Causeway"])]),
  targets: [
    // Core: pure, sans-IO. A core module imports only core modules that are listed above it.
    core("Primitives", allocates: false),
    core("Journal", ["Primitives"], allocates: false),
    core("Frame", ["Primitives"], allocates: false),
    core("Link", ["Primitives", "Frame"], allocates: false),
    core("Mesh", ["Primitives", "Frame"], allocates: false),
    core("Channel", ["Primitives", "Frame"]),
    core("Seal", ["Primitives", "Frame"]),
    core("Session", ["Primitives", "Frame", "Channel"]),
    core("LocalAPI", ["Primitives", "Channel", "Session"]),
    // `Transfer` is pure like the core, except that it uses nettle's SHA-256 in the firmware. The library for
    // applications also imports `Transfer`, so outside the firmware this target has no unsafe flag.
    .target(name: "Transfer", dependencies: embedded ? ["CNettle"] : [],
      exclude: [embedded ? "SHA256.swift" : "SHA256Nettle.swift"],
      swiftSettings: embedded ? language + mode : [.swiftLanguageMode(.v6)]),
    // `TransferFiles` reads and writes the files of transfers. The library for applications also imports
    // `TransferFiles`, so outside the firmware this target needs only libc.
    .target(name: "TransferFiles", dependencies: embedded ? ["Transfer", "CSystem"] : ["Transfer"],
      swiftSettings: embedded ? language + mode : [.swiftLanguageMode(.v6)]),
    core("Node", ["Primitives", "Journal", "Frame", "Link", "Mesh", "Channel", "Seal", "Session"], forwards: true),

    // Rim: system calls, libraries, radios.
    .target(name: "CSystem", cSettings: embedded ? [.define("CAUSEWAY_EMBEDDED")] : [], linkerSettings: [.linkedLibrary("m")]),
    .target(name: "CMbedTLS", dependencies: ["CSystem", "CNettle"], linkerSettings: [
      .linkedLibrary("mbedtls"), .linkedLibrary("mbedx509"), .linkedLibrary("mbedcrypto"),
      wrapped(["mbedtls_ecdsa_read_signature", "mbedtls_pk_verify_ext", "mbedtls_x509_crt_verify_restartable"]),
    ]),
    .target(name: "CNettle", dependencies: ["CSystem"], linkerSettings: [
      .linkedLibrary("hogweed"), .linkedLibrary("nettle"), .linkedLibrary("gmp"),
    ]),
    .target(name: "CSodium", dependencies: ["CSystem"], linkerSettings: [.linkedLibrary("sodium")]),
    .target(name: "CAvahi", dependencies: ["CSystem"], linkerSettings: [
      .linkedLibrary("avahi-client"), .linkedLibrary("avahi-core"), .linkedLibrary("avahi-common"), .linkedLibrary("dbus-1"),
      wrappedByCAvahi,
    ]),
    .target(name: "CBluetooth", dependencies: ["CSystem"], linkerSettings: [.linkedLibrary("bluetooth")]),
    .target(name: "CWPA", dependencies: ["CSystem"], linkerSettings: [.linkedLibrary("wpa_client")]),
    .target(name: "CFormats", dependencies: ["CSystem"], linkerSettings: [.linkedLibrary("inih"), .linkedLibrary("jansson")]),
    .target(name: "CQRCode", dependencies: ["CSystem"], linkerSettings: [.linkedLibrary("qrcodegen")]),
    rim("QRCode", ["CQRCode"]),
    rim("Reactor", ["CSystem", "Primitives"], forwards: true),
    rim("Identity", ["CSystem", "CMbedTLS", "CNettle", "Primitives"]),
    rim("SecureTransport", ["CSystem", "CMbedTLS", "CSodium", "Primitives", "Frame", "Link", "Seal", "Identity"], forwards: true),
    rim("Trust", ["CSystem", "CMbedTLS", "Primitives", "Frame", "Identity", "SecureTransport"]),
    rim("Netlink", ["CSystem", "Reactor", "Primitives"]),
    rim("Bearer", ["CSystem", "Reactor", "Primitives"]),
    rim("BearerIP", ["CSystem", "Netlink", "Reactor", "Bearer", "Primitives"]),
    rim("BearerBluetooth", ["CSystem", "CBluetooth", "Netlink", "Reactor", "Bearer", "Primitives"]),
    rim("WiFiDirect", ["CSystem", "CWPA", "Netlink", "Reactor", "Bearer", "BearerIP", "Primitives"]),
    rim("StatusPage", ["CSystem", "Primitives", "Reactor"]),
    rim("DHCP", ["CSystem", "Primitives", "Reactor"]),
    rim("Board", ["CSystem", "Primitives", "Reactor"]),
    rim("Discovery", ["CSystem", "CAvahi", "Reactor", "Bearer", "Primitives"]),
    rim("Configuration", ["CSystem", "CFormats", "Primitives", "Journal", "Bearer", "Board"]),
    rim("Text", ["CSystem", "Primitives"]),
    rim("JSON", ["CSystem", "CFormats"]),
    rim("Log", ["CSystem", "Primitives", "Journal", "Frame", "Reactor", "Text"]),
    rim("Status", ["CSystem", "Primitives", "Text", "JSON"]),
    rim("Explain", ["Primitives", "Frame", "Text", "JSON"]),
    rim("Capture", ["CSystem", "Primitives", "Frame"]),
    rim("ControlSocket", ["CSystem", "Primitives", "Journal", "Frame", "Reactor", "Text", "JSON", "Log", "Status", "Capture"]),
    rim("DaemonClient", ["CSystem", "Primitives", "Session", "LocalAPI", "Reactor", "Text"]),
    rim("Doctor", ["CSystem", "Primitives", "Reactor", "Netlink", "Bearer", "BearerBluetooth", "Identity", "Trust", "Board", "Configuration"]),
    rim("Terminal", ["CSystem", "Primitives", "Text"]),
    rim("Monitor", ["Primitives", "Text", "Status", "Terminal"]),
    rim("Relay", [
      "CSystem", "Primitives", "Journal", "Frame", "Link", "Channel", "Seal", "Session", "LocalAPI", "Node", "Reactor", "Identity", "SecureTransport", "Trust",
      "Bearer", "BearerIP", "BearerBluetooth", "WiFiDirect", "Discovery", "Board", "Configuration", "Text", "Log", "Status", "Explain", "ControlSocket", "StatusPage", "DHCP",
    ]),
    // The commands, in groups that import each other only through `CommandLine`. `Program` joins the groups.
    rim("CommandLine", [
      "CSystem", "Primitives", "Session", "LocalAPI", "Reactor", "Configuration", "Text", "ControlSocket", "Terminal",
    ]),
    rim("Operator", [
      "CSystem", "CMbedTLS", "Primitives", "Journal", "Session", "LocalAPI", "Reactor", "Identity", "SecureTransport", "Trust", "Configuration", "Text",
      "Log", "Status", "Explain", "Capture", "ControlSocket", "Doctor", "DaemonClient", "Terminal", "Monitor", "QRCode", "Relay", "CommandLine",
    ]),
    rim("Applications", [
      "CSystem", "Primitives", "Session", "LocalAPI", "Transfer", "TransferFiles", "Reactor", "Configuration", "Text", "DaemonClient", "Terminal",
      "CommandLine",
    ]),
    rim("Selftest", [
      "CSystem", "CMbedTLS", "CSodium", "Primitives", "Journal", "Frame", "Channel", "Seal", "Transfer", "Reactor", "Identity", "SecureTransport",
      "Configuration", "Text", "Status", "ControlSocket", "Relay", "CommandLine",
    ]),
    // The product is named causeway, but the module is not. A module `causeway` would clash with the library `Causeway`
    // on file systems that ignore case.
    .executableTarget(
      name: "Program",
      dependencies: ["CSystem", "CommandLine", "Operator", "Applications", "Selftest"],
      swiftSettings: language + mode,
      linkerSettings: embedded
        ? [.unsafeFlags(["-Xclang-linker", "-static", "-use-ld=lld", "-Xlinker", "--gc-sections"])]
        : []),
  ] + (embedded ? [] : [
    // The library for applications, in normal Swift. The library needs only libc and has no unsafe flag, because
    // SwiftPM refuses a dependency on a target with an unsafe flag.
    .target(name: "Causeway", dependencies: ["Transfer", "TransferFiles"], swiftSettings: [.swiftLanguageMode(.v6)]),
    .testTarget(name: "CausewayTests", dependencies: ["Causeway", "Transfer", "TransferFiles"], swiftSettings: [.swiftLanguageMode(.v6)]),
    .testTarget(name: "TransferTests", dependencies: ["Transfer"], swiftSettings: [.swiftLanguageMode(.v6)]),
    // Support modules for tests, in the order of the modules that they support. So a test of a low module compiles no
    // higher module.
    support("TestSupport", ["Primitives", "Frame"], path: "Tests/Support"),
    support("SealSupport", ["Primitives", "Seal", "TestSupport"]),
    support("SessionSupport", ["Primitives", "Channel", "Session", "SealSupport", "TestSupport"]),
    support("NodeSupport", ["Node", "SealSupport", "SessionSupport"]),
    tests("PrimitivesTests", ["Primitives", "TestSupport"]),
    tests("OptimisedTests", ["Primitives"], optimised),
    tests("FrameTests", ["Primitives", "Frame", "TestSupport"]),
    tests("LinkTests", ["Primitives", "Frame", "Link", "TestSupport"]),
    tests("MeshTests", ["Primitives", "Frame", "Mesh", "TestSupport"]),
    tests("NodeTests", ["Primitives", "Journal", "Frame", "Link", "Mesh", "Channel", "Seal", "Session", "Node", "TestSupport", "SealSupport", "NodeSupport"]),
    .target(name: "SessionStories", dependencies: ["Primitives", "Channel", "Session", "TestSupport", "SealSupport", "SessionSupport"], path: "Tests/SessionStories",
      swiftSettings: language + optimisedAndChecked),
    .target(name: "Simulator", dependencies: ["Primitives", "Journal", "Frame", "Link", "Mesh", "Channel", "Seal", "Session", "Node", "TestSupport", "SealSupport", "SessionSupport", "NodeSupport"],
      path: "Tests/Simulator", swiftSettings: language + optimisedAndChecked),
    .executableTarget(name: "simulate", dependencies: ["Simulator", "SessionStories", "Identity", "SecureTransport", "CMbedTLS", "CSystem", "Seal", "Session", "Node", "Primitives"],
      path: "Tests/Simulate", exclude: ["run.py"], swiftSettings: language),
    tests("SimulatorTests", ["Simulator", "SessionStories", "Primitives", "Mesh", "Channel", "Session", "Node"], optimisedAndChecked),
    .target(name: "LoopSupport", dependencies: ["Reactor", "Primitives"], path: "Tests/LoopSupport", swiftSettings: language),
    tests("TextTests", ["Text", "Primitives"]),
    tests("JSONTests", ["JSON"]),
    tests("LogTests", ["CSystem", "Primitives", "Journal", "Text", "Log"]),
    tests("StatusTests", ["Primitives", "Text", "JSON", "Status"]),
    tests("ExplainTests", ["Primitives", "Frame", "Text", "Explain"]),
    tests("CaptureTests", ["CSystem", "Primitives", "Frame", "Capture"]),
    tests("ControlSocketTests", ["CSystem", "Text", "Status", "Capture", "ControlSocket", "Frame", "Journal", "Primitives", "Reactor"]),
    tests("NetlinkTests", ["Netlink", "CSystem", "Reactor", "Primitives", "LoopSupport"]),
    tests("BearerTests", ["Bearer"]),
    tests("BearerBluetoothTests", ["BearerBluetooth", "Bearer", "CSystem", "Reactor", "Primitives", "LoopSupport"]),
    tests("BoardTests", ["Board", "CSystem", "Primitives", "Reactor", "LoopSupport"]),
    tests("ConfigurationTests", ["Configuration", "Bearer", "Board", "CSystem", "Primitives"]),
    tests("DoctorTests", ["Doctor", "BearerBluetooth", "Netlink", "Board", "Configuration", "CSystem", "FileSupport", "Identity", "Reactor", "Trust"]),
    tests("DiscoveryTests", ["Discovery", "CAvahi", "CSystem", "Reactor", "Bearer", "Primitives", "LoopSupport"]),
    tests("JournalTests", ["Journal", "Primitives"]),
    tests("ReactorTests", ["Reactor", "CSystem", "Primitives", "LoopSupport"]),
    tests("WiFiDirectTests", ["WiFiDirect", "BearerIP", "Bearer", "Reactor", "CSystem", "Primitives", "LoopSupport"]),
    .target(name: "FileSupport", dependencies: ["CSystem", "Identity", "Primitives"], path: "Tests/FileSupport", swiftSettings: language),
    tests("IdentityTests", ["Identity", "FileSupport", "TestSupport", "CSystem", "Primitives"]),
    tests("SecureTransportTests", ["SecureTransport", "Identity", "Trust", "Seal", "FileSupport", "CMbedTLS", "CSystem", "Primitives", "Frame", "Link"]),
    tests("RelayTests", [
      "Relay", "CSystem", "Primitives", "Frame", "Channel", "Link", "Session", "Node", "Reactor", "Identity", "SecureTransport", "Trust", "Bearer", "FileSupport",
      "LoopSupport", "Board", "Configuration", "Journal", "Status", "Explain", "BearerBluetooth", "BearerIP", "Discovery",
    ]),
    tests("TrustTests", ["Trust", "SecureTransport", "Identity", "FileSupport", "Frame", "CMbedTLS", "CSystem", "Primitives"]),
    tests("BearerIPTests", ["BearerIP", "Netlink", "Bearer", "Reactor", "CSystem", "Primitives", "LoopSupport"]),
    tests("ChannelTests", ["Primitives", "Channel"], optimisedAndChecked),
    tests("LedgerTests", ["CSystem", "Primitives", "Relay"]),
    tests("SealTests", ["Seal", "Frame", "Primitives", "TestSupport", "SealSupport"]),
    tests("SessionTests", ["Primitives", "Frame", "Channel", "Session", "SessionStories", "TestSupport", "SealSupport", "SessionSupport"], optimisedAndChecked),
    .testTarget(name: "LocalAPITests", dependencies: ["CSystem", "Primitives", "Channel", "Session", "LocalAPI", "TestSupport", "SealSupport", "SessionSupport"], exclude: ["vectors.txt"], swiftSettings: language),
    tests("DaemonClientTests", ["CSystem", "Primitives", "Session", "LocalAPI", "DaemonClient"]),
    tests("ApplicationsTests", [
      "CSystem", "Primitives", "Session", "LocalAPI", "Transfer", "TransferFiles", "Reactor", "Text", "DaemonClient", "Terminal", "CommandLine",
      "Applications", "FileSupport",
    ]),
    tests("TerminalTests", ["Text", "Primitives", "Terminal"]),
    tests("DHCPTests", ["DHCP", "Primitives"]),
    tests("StatusPageTests", ["StatusPage", "CSystem", "Primitives", "Reactor", "LoopSupport"]),
    tests("QRCodeTests", ["QRCode"]),
    tests("OperatorTests", ["Primitives", "Text", "ControlSocket", "CommandLine", "Operator"]),
    tests("MonitorTests", ["Status", "Monitor", "Primitives", "Terminal"]),
    // The fuzz targets. A normal build runs them on the inputs of the corpus. The fuzzers are built with different
    // sanitizers, so each of the two programs imports only what its targets need.
    .target(name: "FuzzSupport", dependencies: ["CSystem"], path: "Tests/Fuzz/Support", swiftSettings: language + (fuzzing ? [.define("FUZZING")] : [])),
    .executableTarget(
      name: "fuzz-decoders",
      dependencies: [
        "FuzzSupport", "CAvahi", "CMbedTLS", "CSystem", "Primitives", "Journal", "Frame", "Link", "Channel", "Seal", "Session", "LocalAPI", "Transfer", "Bearer",
        "BearerBluetooth", "WiFiDirect", "Discovery", "Configuration", "Text", "Log", "Status", "ControlSocket", "Identity", "SecureTransport", "StatusPage", "DHCP", "Trust", "TestSupport",
        "SealSupport", "SessionSupport",
      ],
      path: "Tests/Fuzz/Decoders", swiftSettings: language, linkerSettings: fuzzing ? [.unsafeFlags(["-use-ld=lld"])] : []),
    .executableTarget(
      name: "fuzz-nodes",
      dependencies: ["FuzzSupport", "Primitives", "Journal", "Frame", "Channel", "Seal", "Node", "TestSupport", "SealSupport", "NodeSupport"],
      path: "Tests/Fuzz/Nodes", swiftSettings: language, linkerSettings: fuzzing ? [.unsafeFlags(["-use-ld=lld"])] : []),
  ])
)

// CAUSEWAY_ONLY reduces the package to some test targets and the modules that they import, such as
// CAUSEWAY_ONLY="MeshTests FrameTests" (Tests/quick.sh).
if let only = Context.environment["CAUSEWAY_ONLY"] {
  var wanted = Set(only.split(separator: " ").map(String.init))
  var count = 0
  while count < wanted.count {
    count = wanted.count
    for target in package.targets where wanted.contains(target.name) {
      for case .byNameItem(let name, _) in target.dependencies { wanted.insert(name) }
    }
  }
  package.targets.removeAll { !wanted.contains($0.name) }
  package.products = []
}
