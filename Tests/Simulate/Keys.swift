import Simulator

#if canImport(SecureTransport)
  import CSystem
  import Node
  import Primitives
  import SecureTransport
#endif

/// Selects the cryptography that a seed runs with.
enum Keys {
  static func maker(for options: Options) -> KeyMaker {
    #if canImport(SecureTransport)
      if options.wantsRealCryptography { return RealKey.make }
    #endif
    return Simulation.standInKey
  }

  /// The name of the library that signs in seeds with real cryptography.
  static var realName: String {
    #if canImport(SecureTransport)
      "mbedTLS"
    #else
      "stand-in"
    #endif
  }
}
