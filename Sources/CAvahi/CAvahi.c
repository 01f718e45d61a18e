#include "CAvahi.h"

// libdbus's server side asks systemd for its sockets; Debian has no static libsystemd and a D-Bus client
// never comes here.
__attribute__((weak)) int sd_listen_fds(int unset_environment) { (void)unset_environment; return 0; }
__attribute__((weak)) int sd_is_socket(int fd, int family, int type, int listening) {
  (void)fd; (void)family; (void)type; (void)listening;
  return 0;
}

// A daemon that hangs must not hang the reactor. The names are the linker's: calls of
// dbus_connection_send_with_reply_and_block arrive here when the program is linked with --wrap.
typedef struct DBusConnection DBusConnection;
typedef struct DBusMessage DBusMessage;
typedef struct DBusError DBusError;
__attribute__((weak)) DBusMessage *__real_dbus_connection_send_with_reply_and_block(
    DBusConnection *connection, DBusMessage *message, int milliseconds, DBusError *error);
DBusMessage *__wrap_dbus_connection_send_with_reply_and_block(
    DBusConnection *connection, DBusMessage *message, int milliseconds, DBusError *error);
DBusMessage *__wrap_dbus_connection_send_with_reply_and_block(
    DBusConnection *connection, DBusMessage *message, int milliseconds, DBusError *error) {
  if (milliseconds < 0 || milliseconds > CAVAHI_CALL_MILLISECONDS_MAX) milliseconds = CAVAHI_CALL_MILLISECONDS_MAX;
  return __real_dbus_connection_send_with_reply_and_block(connection, message, milliseconds, error);
}

// The same for libavahi-core's note of an answer that an asker knows (RFC 6762, section 7.1), which keeps it from giving
// that answer. It notes the answers of others, too, and compares each new one with all of the last 0.7 s. When n boxes
// start, each asks again after 1, 2, 4, … seconds and lists n services: from 40 boxes on that takes all processors. Of the
// services of our type only our own matters.
static char own_type[AVAHI_DOMAIN_NAME_MAX], own_service[AVAHI_DOMAIN_NAME_MAX];

void cavahi_set_own_service(const char *name, const char *type) {
  if (avahi_service_name_join(own_type, sizeof own_type, NULL, type, "local") < 0 ||
      avahi_service_name_join(own_service, sizeof own_service, name, type, "local") < 0)
    own_type[0] = own_service[0] = 0;
}

__attribute__((weak)) void __real_avahi_response_scheduler_suppress(
    void *scheduler, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker) {
  // Both names are in the one form in which libavahi writes escapes.
  if (record->key->type == AVAHI_DNS_TYPE_PTR && strcasecmp(record->key->name, own_type) == 0 &&
      strcasecmp(record->data.ptr.name, own_service) != 0)
    return;
  __real_avahi_response_scheduler_suppress(scheduler, record, asker);
}

// And for its comparison of names, which takes both apart label by label, whether they have escapes or not: with n services
// in the cache each record of an answer is compared with n others.
__attribute__((weak)) int __real_avahi_domain_equal(const char *one, const char *other);
int __wrap_avahi_domain_equal(const char *one, const char *other);

static int is_plain(const char *name) {
  size_t length = strlen(name);
  return length > 0 && name[length - 1] != '.' && !memchr(name, '\\', length);
}

int __wrap_avahi_domain_equal(const char *one, const char *other) {
  if (is_plain(one) && is_plain(other)) return strcasecmp(one, other) == 0;
  return __real_avahi_domain_equal(one, other);
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
