#include "CSystem.h"

#include <linux/filter.h>
#include <net/if_arp.h>

static int saved_argc;
static char **saved_argv;

__attribute__((constructor)) static void save_arguments(int argc, char **argv) {
  saved_argc = argc;
  saved_argv = argv;
}

int csystem_argc(void) { return saved_argc; }
char **csystem_argv(void) { return saved_argv; }

// Replacements for library functions that the firmware does not need. board/build/firmware.ld redirects those functions
// to the replacements.
char *csystem_untranslated(const char *domain, const char *message, int category);
char *csystem_untranslated(const char *domain, const char *message, int category) {
  (void)domain, (void)category;
  return (char *)message;
}
int csystem_failed(void);
int csystem_failed(void) { return -1; }
int csystem_none(void);
int csystem_none(void) { return 0; }
void csystem_nothing(void);
void csystem_nothing(void) {}

// Debian 13's static libraries call functions that glibc provides since version 2.38. The glibc of Debian 12 lacks
// these functions, and only tests are built on Debian 12. In the build of the firmware this block defines nothing.
#if !__GLIBC_PREREQ(2, 38)
long __isoc23_strtol(const char *s, char **end, int base) { return strtol(s, end, base); }
long long __isoc23_strtoll(const char *s, char **end, int base) { return strtoll(s, end, base); }
unsigned long __isoc23_strtoul(const char *s, char **end, int base) { return strtoul(s, end, base); }
size_t strlcpy(char *to, const char *from, size_t size) {
  size_t length = strlen(from);
  if (size > 0) {
    size_t n = length < size ? length : size - 1;
    memcpy(to, from, n);
    to[n] = 0;
  }
  return length;
}
#endif

uint64_t csystem_neighbour(int socket, const char *interface, uint32_t address) {
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
  struct arpreq request = {.arp_flags = 0};
  memcpy(&request.arp_pa, &place, sizeof place);
  snprintf(request.arp_dev, sizeof request.arp_dev, "%s", interface);
  if (ioctl(socket, SIOCGARP, &request) != 0) return 0;
  if (!(request.arp_flags & ATF_COM) || request.arp_ha.sa_family != ARPHRD_ETHER) return 0;
  uint64_t hardware = 0;
  for (int i = 0; i < 6; i++) hardware = hardware << 8 | (unsigned char)request.arp_ha.sa_data[i];
  return hardware;
}

int csystem_keep_own_hardware(int descriptor) {
  // Offsets without SKF_LL_OFF are relative to the UDP header. This header has 8 bytes, and chaddr begins at byte 28 of
  // the DHCP message behind it (RFC 2131, section 2). Offsets with SKF_LL_OFF are relative to the Ethernet header,
  // whose source address begins at byte 6. A load beyond the end of the datagram drops the datagram.
  const uint32_t source = (uint32_t)SKF_LL_OFF + 6, claimed = 8 + 28;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, source),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, claimed),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 5),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, source + 4),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, claimed + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
  return setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}
