/// The version of this source tree.
public let causewayVersion = "0.1.0"
