// The kernel's Bluetooth sockets. The opcodes of the management interface have no public header: see
// Sources/BearerBluetooth/Management/ManagementCommand.swift.
#pragma once
#include <CSystem.h>
#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/l2cap.h>
#include <bluetooth/rfcomm.h>

#include "BNEP.h"

// glibc declares pointers to socket addresses as a transparent union, and Swift cannot pass such a pointer.
static inline int cbluetooth_bind_control(int descriptor, const struct sockaddr_hci *address) {
  return bind(descriptor, (const struct sockaddr *)address, sizeof *address);
}
static inline int cbluetooth_bind(int descriptor, const struct sockaddr_l2 *address) {
  return bind(descriptor, (const struct sockaddr *)address, sizeof *address);
}
static inline int cbluetooth_connect(int descriptor, const struct sockaddr_l2 *address) {
  return connect(descriptor, (const struct sockaddr *)address, sizeof *address);
}
/// The accepted socket is non-blocking and closed on exec.
static inline int cbluetooth_accept(int descriptor, struct sockaddr_l2 *peer) {
  socklen_t size = sizeof *peer;
  return accept4(descriptor, (struct sockaddr *)peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
static inline int cbluetooth_bind_rfcomm(int descriptor, const struct sockaddr_rc *address) {
  return bind(descriptor, (const struct sockaddr *)address, sizeof *address);
}
static inline int cbluetooth_connect_rfcomm(int descriptor, const struct sockaddr_rc *address) {
  return connect(descriptor, (const struct sockaddr *)address, sizeof *address);
}
static inline int cbluetooth_own_rfcomm(int descriptor, struct sockaddr_rc *address) {
  socklen_t size = sizeof *address;
  return getsockname(descriptor, (struct sockaddr *)address, &size);
}
/// The accepted socket is non-blocking and closed on exec.
static inline int cbluetooth_accept_rfcomm(int descriptor, struct sockaddr_rc *peer) {
  socklen_t size = sizeof *peer;
  return accept4(descriptor, (struct sockaddr *)peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
