// libdbus asks the C library for host names and accounts. In a static binary these calls would load shared libraries of
// the machine at run time (NSS), and the firmware must not depend on such libraries. The system bus needs neither host
// names nor account names: it is a local socket that identifies accounts by number.
//
// So board/build/sysroot.sh renames the calls to the functions below, which find nothing. libdbus writes its warnings
// both to standard error and to the system's log. The last two functions keep the warnings out of the log.
#include <netdb.h>
#include <pwd.h>
#include <stdarg.h>
#include <stddef.h>

int cavahi_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **result);
int cavahi_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
  (void)host; (void)service; (void)hints;
  *result = NULL;
  return EAI_NONAME;
}

void cavahi_freeaddrinfo(struct addrinfo *list);
void cavahi_freeaddrinfo(struct addrinfo *list) { (void)list; }

int cavahi_getnameinfo(
    const struct sockaddr *address, socklen_t length, char *host, socklen_t host_length, char *service,
    socklen_t service_length, int flags);
int cavahi_getnameinfo(
    const struct sockaddr *address, socklen_t length, char *host, socklen_t host_length, char *service,
    socklen_t service_length, int flags) {
  (void)address; (void)length; (void)host; (void)host_length; (void)service; (void)service_length; (void)flags;
  return EAI_NONAME;
}

int cavahi_getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t size, struct passwd **result);
int cavahi_getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t size, struct passwd **result) {
  (void)name; (void)entry; (void)buffer; (void)size;
  *result = NULL;
  return 0;
}

int cavahi_getpwuid_r(uid_t user, struct passwd *entry, char *buffer, size_t size, struct passwd **result);
int cavahi_getpwuid_r(uid_t user, struct passwd *entry, char *buffer, size_t size, struct passwd **result) {
  (void)user; (void)entry; (void)buffer; (void)size;
  *result = NULL;
  return 0;
}

int cavahi_getgrouplist(const char *user, gid_t group, gid_t *groups, int *count);
int cavahi_getgrouplist(const char *user, gid_t group, gid_t *groups, int *count) {
  (void)user;
  if (*count < 1) {
    *count = 1;
    return -1;
  }
  groups[0] = group;
  *count = 1;
  return 1;
}

void cavahi_openlog(const char *name, int options, int facility);
void cavahi_openlog(const char *name, int options, int facility) { (void)name; (void)options; (void)facility; }

void cavahi___vsyslog_chk(int priority, int flag, const char *format, va_list arguments);
void cavahi___vsyslog_chk(int priority, int flag, const char *format, va_list arguments) {
  (void)priority; (void)flag; (void)format; (void)arguments;
}
