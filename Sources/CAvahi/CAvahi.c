#include "CAvahi.h"

// libdbus's server side asks systemd for its sockets; Debian has no static libsystemd and a D-Bus client
// never comes here.
__attribute__((weak)) int sd_listen_fds(int unset_environment) { (void)unset_environment; return 0; }
__attribute__((weak)) int sd_is_socket(int fd, int family, int type, int listening) {
  (void)fd; (void)family; (void)type; (void)listening;
  return 0;
}

// A daemon that hangs must not hang the reactor. The names are the linker's: calls of
// dbus_connection_send_with_reply_and_block arrive here, because every program is linked with --wrap (Package.swift).
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

// libavahi-core calls this instead of avahi_reverse_lookup_name (board/sysroot.sh renames it). A responder claims the
// reverse name of each of its addresses, such as 1.0.0.10.in-addr.arpa, for itself alone: two responders on one
// machine would dispute every address and rename the host for ever. Ours claims a name below it that is its own.
char *cavahi_reverse_lookup_name(const AvahiAddress *address, char *name, size_t size);
char *cavahi_reverse_lookup_name(const AvahiAddress *address, char *name, size_t size) {
  static unsigned token;
  char reverse[128];
  if (token == 0 && getrandom(&token, sizeof token, GRND_NONBLOCK) != sizeof token) token = (unsigned)getpid();
  avahi_reverse_lookup_name(address, reverse, sizeof reverse);
  snprintf(name, size, "causeway-%08x.%s", token, reverse);
  return name;
}
