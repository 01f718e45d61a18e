// The kernel's Ethernet over Bluetooth (net/bluetooth/bnep), and the bridge that the interfaces of peers join.
// Addresses in this file have their least significant byte first, as in bdaddr_t.
#pragma once
#include <bluetooth/bluetooth.h>

/// Opens a BNEP socket, which is the argument `control` of the functions below. Returns the socket, or -1 with errno
/// set (EPROTONOSUPPORT: the kernel has no module `bnep`).
int cbluetooth_bnep_open(void);

/// Creates a network interface for a connected L2CAP channel, adds the interface to a bridge and brings it up. This
/// machine has the role of a network access point. The caller must not have read the peer's setup request from the
/// channel. The kernel reads the request with its extensions and confirms it to the peer.
///
/// Stores the name of the interface in `name`. Returns 0, or -1 with errno set. ENODEV: the bridge does not exist;
/// EPERM: CAP_NET_ADMIN is missing; EEXIST: the peer already has an interface; EBADFD: the channel is closed.
int cbluetooth_bnep_join(int control, int channel, bdaddr_t peer, const char *_Nonnull bridge, char name[_Nonnull 16]);

/// Removes the interface of a peer, if the peer has one. This call is necessary, because the kernel keeps an interface
/// when the process that created it dies.
void cbluetooth_bnep_leave(int control, bdaddr_t peer);

/// Removes the interfaces that an earlier process left behind at the controller whose address is `own`.
void cbluetooth_bnep_leave_all(int control, bdaddr_t own);
