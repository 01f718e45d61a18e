import Simulator

#if canImport(SecureTransport)
  import CSystem
  import Node
  import Primitives
  import SecureTransport
#endif

/// Selects the cryptography of a seed's run.
enum Keys {
  static func maker(for options: Options) -> KeyMaker {
    #if canImport(SecureTransport)
      if options.wantsRealCryptography { return RealKey.make }
    #endif
    return Simulation.standInKey
  }

  /// The name of the library that is used in seeds with real cryptography.
  static var realName: String {
    #if canImport(SecureTransport)
      "mbedTLS"
    #else
      "stand-in"
    #endif
  }
}
