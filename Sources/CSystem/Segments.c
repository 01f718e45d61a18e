#include "CSystem.h"

bool csystem_tcp_segments(int descriptor, uint32_t *sent, uint32_t *resent) {
  // The kernel's struct tcp_info is longer than glibc's, and its member tcpi_data_segs_out is at byte 156. linux/tcp.h,
  // which declares the kernel's struct, cannot be included together with netinet/tcp.h.
  _Static_assert(sizeof(struct tcp_info) == 104, "glibc's struct has grown: take its own member");
  struct {
    struct tcp_info known;
    uint32_t more[14];
  } info;
  socklen_t length = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || length < sizeof info) return false;
  *sent = info.more[13];
  *resent = info.known.tcpi_total_retrans;
  return true;
}
