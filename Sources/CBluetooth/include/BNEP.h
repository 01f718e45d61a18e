// The kernel's Ethernet over Bluetooth (net/bluetooth/bnep), and the bridge that its interfaces join. Addresses have
// their least significant byte first, as in bdaddr_t.
#pragma once
#include <bluetooth/bluetooth.h>

/// Opens a socket for requests. Returns -1 with errno set (EPROTONOSUPPORT: the kernel has no module `bnep`).
int cbluetooth_bnep_open(void);

/// Makes a network interface of a connected channel, in the role of a network access point, adds it to a bridge and
/// brings it up. The setup request must still be unread: the kernel reads it and its extensions, and answers with
/// success.
///
/// Stores the name of the interface. Returns 0, or -1 with errno set. ENODEV: no such bridge; EPERM: CAP_NET_ADMIN is
/// missing; EEXIST: the peer has an interface already; EBADFD: the channel has ended.
int cbluetooth_bnep_join(int control, int channel, bdaddr_t peer, const char *_Nonnull bridge, char name[_Nonnull 16]);

/// Removes the interface of a peer, if there is one. The kernel keeps an interface when its process dies.
void cbluetooth_bnep_leave(int control, bdaddr_t peer);

/// Removes the interfaces that a former process left at the controller with this address.
void cbluetooth_bnep_leave_all(int control, bdaddr_t own);
