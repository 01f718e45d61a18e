#include "CAvahi.h"

// Stand-ins for two functions of libsystemd, which the server side of libdbus needs for linking. Debian has no static
// libsystemd, and a D-Bus client never calls these functions.
__attribute__((weak)) int sd_listen_fds(int unset_environment) { (void)unset_environment; return 0; }
__attribute__((weak)) int sd_is_socket(int fd, int family, int type, int listening) {
  (void)fd; (void)family; (void)type; (void)listening;
  return 0;
}

// Limits the time of blocking D-Bus calls, because an avahi-daemon that hangs must not block the reactor. Every program
// is linked with --wrap (Package.swift). So calls of dbus_connection_send_with_reply_and_block reach the function with
// the prefix __wrap_.
typedef struct DBusConnection DBusConnection;
typedef struct DBusMessage DBusMessage;
typedef struct DBusError DBusError;
DBusMessage *__real_dbus_connection_send_with_reply_and_block(
    DBusConnection *connection, DBusMessage *message, int milliseconds, DBusError *error);
DBusMessage *__wrap_dbus_connection_send_with_reply_and_block(
    DBusConnection *connection, DBusMessage *message, int milliseconds, DBusError *error);
DBusMessage *__wrap_dbus_connection_send_with_reply_and_block(
    DBusConnection *connection, DBusMessage *message, int milliseconds, DBusError *error) {
  if (milliseconds < 0 || milliseconds > CAVAHI_CALL_MILLISECONDS_MAX) milliseconds = CAVAHI_CALL_MILLISECONDS_MAX;
  return __real_dbus_connection_send_with_reply_and_block(connection, message, milliseconds, error);
}

static void ignore_log(AvahiLogLevel level, const char *text) { (void)level; (void)text; }

void cavahi_silence_log(void) { avahi_set_log_function(ignore_log); }

// libavahi-core calls this function instead of avahi_reverse_lookup_name, because board/build/sysroot.sh renames the
// call. An mDNS responder claims the reverse name of each address of its machine, such as 1.0.0.10.in-addr.arpa,
// exclusively. Two responders on one machine would dispute every address, and would rename the host again and again. So
// this function makes the built-in responder claim a unique name below the reverse name.
char *cavahi_reverse_lookup_name(const AvahiAddress *address, char *name, size_t size);
char *cavahi_reverse_lookup_name(const AvahiAddress *address, char *name, size_t size) {
  static unsigned token;
  char reverse[128];
  if (token == 0 && getrandom(&token, sizeof token, GRND_NONBLOCK) != sizeof token) token = (unsigned)getpid();
  avahi_reverse_lookup_name(address, reverse, sizeof reverse);
  snprintf(name, size, "causeway-%08x.%s", token, reverse);
  return name;
}

uint64_t cavahi_source6(const uint8_t *address) {
  int first = address[0] == 0xFE && (address[1] & 0xC0) == 0x80 ? 8 : 0;
  uint64_t number = 0;
  for (int i = 0; i < 8; i++) number = number << 8 | address[first + i];
  // The highest bit makes the number different from 0 and from the number of any IPv4 address.
  return number | (uint64_t)1 << 63;
}

static uint64_t charged_source(const struct sockaddr_storage *address) {
  if (address->ss_family == AF_INET) {
    return (uint64_t)0xFFFF << 32 | ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
  }
  if (address->ss_family != AF_INET6) return 0;
  return cavahi_source6(((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr);
}

ssize_t cavahi_peek(int descriptor, void *buffer, size_t size, uint64_t *source, uint32_t *interface) {
  struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
  union {
    struct cmsghdr head;
    char bytes[512];
  } control;
  struct iovec part = {.iov_base = buffer, .iov_len = size};
  struct msghdr message = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = &control, .msg_controllen = sizeof control};
  *source = 0;
  *interface = 0;
  ssize_t count = recvmsg(descriptor, &message, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  if (count < 0) return count;
  *source = charged_source(&address);
  for (struct cmsghdr *item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_PKTINFO) {
      *interface = (uint32_t)((struct in_pktinfo *)CMSG_DATA(item))->ipi_ifindex;
    } else if (item->cmsg_level == IPPROTO_IPV6 && item->cmsg_type == IPV6_PKTINFO) {
      *interface = ((struct in6_pktinfo *)CMSG_DATA(item))->ipi6_ifindex;
    }
  }
  return count;
}
