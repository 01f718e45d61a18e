#include "CAvahi.h"

// libdbus's server side asks systemd for its sockets; Debian has no static libsystemd and a D-Bus client
// never comes here.
__attribute__((weak)) int sd_listen_fds(int unset_environment) { (void)unset_environment; return 0; }
__attribute__((weak)) int sd_is_socket(int fd, int family, int type, int listening) {
  (void)fd; (void)family; (void)type; (void)listening;
  return 0;
}
