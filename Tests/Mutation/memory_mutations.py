"""Mutations of the release of memory, and of compact data structures: see mutate.py."""

from row import Row

ROWS = [
    Row("advertisements behind a removed one keep their old offsets", "Sources/Mesh/AdvertisementStore.swift",
        "    for other in extents.indices where extents[other].first > gone.first { extents[other].first -= gone.byteCount }\n", "",
        "MeshTests"),
    Row("the memory of links in use is released", "Sources/Node/UnusedMemory.swift", "links[end].state == .idle", "true",
        "NodeTests"),
    Row("record buffers keep all their pages after a handshake", "Sources/SecureTransport/SecureStream.swift",
        "      cmbedtls_release_buffers(tls)\n", "", "SecureTransportTests"),
    Row("each peer keeps its own copy of a service type", "Sources/Node/Directory.swift", "      return entry.peer.serviceType\n",
        "      return array(type)\n", "NodeTests"),
]
