#include "CBluetooth.h"
#include <bluetooth/bnep.h>
#include <linux/sockios.h>

int cbluetooth_bnep_open(void) { return socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC, BTPROTO_BNEP); }

static void leave(int control, const uint8_t peer[6]) {
  struct bnep_conndel_req request = {.flags = 0};
  memcpy(request.dst, peer, sizeof request.dst);
  ioctl(control, BNEPCONNDEL, &request);
}

// The BNEP requests need the address with the most significant byte first, as in Ethernet.
void cbluetooth_bnep_leave(int control, bdaddr_t peer) {
  bdaddr_t reversed;
  baswap(&reversed, &peer);
  leave(control, reversed.b);
}

static int any_socket(void) { return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }

void cbluetooth_bnep_leave_all(int control, bdaddr_t own) {
  // This array has more entries than a controller can have links.
  struct bnep_conninfo found[32];
  struct bnep_connlist_req list = {.cnum = sizeof found / sizeof *found, .ci = found};
  bdaddr_t reversed;
  int any = any_socket();
  if (any < 0) return;
  baswap(&reversed, &own);
  if (ioctl(control, BNEPGETCONNLIST, &list) < 0) list.cnum = 0;
  for (uint32_t i = 0; i < list.cnum; i++) {
    struct ifreq request = {0};
    memcpy(request.ifr_name, found[i].device, sizeof request.ifr_name);
    // A BNEP interface has the hardware address of its controller.
    if (found[i].role == BNEP_SVC_NAP && ioctl(any, SIOCGIFHWADDR, &request) == 0 &&
        memcmp(request.ifr_hwaddr.sa_data, reversed.b, sizeof reversed.b) == 0)
      leave(control, found[i].dst);
  }
  close(any);
}

static int join_bridge(int any, const char *bridge, const char *name) {
  struct ifreq request = {0};
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", bridge);
  request.ifr_ifindex = (int)if_nametoindex(name);
  if (ioctl(any, SIOCBRADDIF, &request) < 0) return -1;
  memcpy(request.ifr_name, name, sizeof request.ifr_name);
  if (ioctl(any, SIOCGIFFLAGS, &request) < 0) return -1;
  request.ifr_flags |= IFF_UP;
  return ioctl(any, SIOCSIFFLAGS, &request);
}

int cbluetooth_bnep_join(int control, int channel, bdaddr_t peer, const char *bridge, char name[16]) {
  struct bnep_connadd_req request = {.sock = channel, .flags = 1 << BNEP_SETUP_RESPONSE, .role = BNEP_SVC_NAP};
  char path[64];
  // The bridge is checked first, because the kernel confirms the setup to the peer before the interface joins the
  // bridge.
  snprintf(path, sizeof path, "/sys/class/net/%s/bridge", bridge);
  if (access(path, F_OK) < 0) {
    errno = ENODEV;
    return -1;
  }
  int any = any_socket(), result = any < 0 ? -1 : ioctl(control, BNEPCONNADD, &request);
  if (result == 0) {
    memcpy(name, request.device, sizeof request.device);
    result = join_bridge(any, bridge, name);
    if (result < 0) {
      int code = errno;
      cbluetooth_bnep_leave(control, peer);
      errno = code;
    }
  }
  int code = errno;
  if (any >= 0) close(any);
  errno = code;
  return result;
}
