// The kernel's Ethernet over Bluetooth (net/bluetooth/bnep), and the bridge that its interfaces join. Addresses stand with the
// least significant byte first, as in bdaddr_t.
#pragma once
#include <bluetooth/bluetooth.h>

/// A socket for requests; -1 with errno. EPROTONOSUPPORT: the kernel has no module `bnep`.
int cbluetooth_bnep_open(void);

/// Makes a network interface of a connected channel, as a network access point has it, puts it into a bridge and brings it up. The
/// setup request must still be unread: the kernel takes it, with the extensions behind it, and answers that it succeeds. Stores
/// the interface's name. 0, or -1 with errno. ENODEV: there is no such bridge; EPERM: without CAP_NET_ADMIN; EEXIST: the peer
/// has an interface; EBADFD: the channel has ended.
int cbluetooth_bnep_join(int control, int channel, bdaddr_t peer, const char *_Nonnull bridge, char name[_Nonnull 16]);

/// Ends the interface of a peer, if there is one: the kernel keeps it when its process dies.
void cbluetooth_bnep_leave(int control, bdaddr_t peer);

/// Ends those that a former process has left at the controller with this address.
void cbluetooth_bnep_leave_all(int control, bdaddr_t own);
