"""Mutations of what gives memory back, and of what is packed to take little."""

from row import Row

ROWS = [
    Row("advertisements behind a removed one are looked for where they were", "Sources/Mesh/AdvertisementStore.swift",
        "    for other in extents.indices where extents[other].first > gone.first { extents[other].first -= gone.byteCount }\n", "",
        "MeshTests"),
    Row("the memory of links in use is given back", "Sources/Node/UnusedMemory.swift", "links[end].state == .idle", "true",
        "NodeTests"),
    Row("record buffers keep all their pages after a handshake", "Sources/SecureTransport/SecureStream.swift",
        "      cmbedtls_release_buffers(tls)\n", "", "SecureTransportTests"),
    Row("each peer keeps a service type of its own", "Sources/Node/Directory.swift", "      return entry.peer.serviceType\n",
        "      return array(type)\n", "NodeTests"),
]
