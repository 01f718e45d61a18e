import Node
import SealSupport
import SessionSupport

extension StandInCryptography: NodeCryptography {}
