// System headers for the rim, and the few things Swift cannot reach by itself.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <argp.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nl80211.h>
#include <linux/rtnetlink.h>
#include <malloc.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/// The calling thread's errno (a macro in C, which Swift does not import).
static inline int csystem_errno(void) { return errno; }

/// Embedded Swift has no CommandLine: glibc hands argc and argv to constructors.
int csystem_argc(void);
char *_Nullable *_Nonnull csystem_argv(void);

/// What every command begins with: descriptors 0 to 2 are open, SIGPIPE is ignored, and an output of stdio that could not be
/// written ends the process with 1.
void csystem_prepare_process(void);

/// Keep the pages from `address` on usable although their file may be cut: they are all replaced by zeros then, which
/// `csystem_mapping_is_lost` tells. One mapping a process; NULL forgets it.
void csystem_keep_mapping(void *_Nullable address, size_t bytes);
bool csystem_mapping_is_lost(void);
/// What is called for any other SIGBUS, before the default action.
void csystem_on_other_bus_error(void (*_Nullable handler)(int));

/// mremap(2) of a whole mapping to a fixed address, whose old mapping goes. False with errno set.
static inline bool csystem_move_mapping(void *_Nonnull from, size_t bytes, void *_Nonnull to) {
  return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

/// gmtime_r(3): seconds since 1970 as a date in UTC; NULL with EOVERFLOW for a year that an int does not hold. The C
/// library's brings its time zones and number scanner along, 90 kB; board/sysroot.sh gives mbedTLS this one.
struct tm *_Nullable csystem_gmtime_r(const time_t *_Nonnull time, struct tm *_Nonnull parts);

/// timegm(3) for a month of 0…11: the date in UTC as seconds since 1970.
time_t csystem_timegm(const struct tm *_Nonnull parts);

/// open(2): variadic functions are closed to Swift. `mode` counts only when a file is made.
static inline int csystem_open(const char *_Nonnull path, int flags, mode_t mode) { return open(path, flags, mode); }

/// Names of enumerations and casts that Swift does not import.
static const int csystem_timer_cancel_on_set = TFD_TIMER_CANCEL_ON_SET;

static inline void csystem_set_errno(int code) { errno = code; }

/// argp_error(3): one line on stderr, a pointer to --help, and the end of the process.
static inline void csystem_argp_error(const struct argp_state *_Nullable state, const char *_Nonnull message) {
  argp_error(state, "%s", message);
}

/// The exit status of argp's own errors.
static inline void csystem_argp_set_error_status(int status) { argp_err_exit_status = status; }
