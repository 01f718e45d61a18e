"""Multicast DNS as a stranger sends it (RFC 6762)."""
import socket

GROUP, PORT = "224.0.0.251", 5353


def open_socket():
    """Return a socket that sends from the port of multicast DNS, which it shares with other programs."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    udp.bind(("", PORT))
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    return udp
