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
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "GPIO.h"

/// The calling thread's errno (a macro in C, which Swift does not import).
static inline int csystem_errno(void) { return errno; }

/// Embedded Swift has no CommandLine: glibc hands argc and argv to constructors.
int csystem_argc(void);
char *_Nullable *_Nonnull csystem_argv(void);

/// What every command begins with: descriptors 0 to 2 are open, SIGPIPE is ignored, an output of stdio that could not be
/// written ends the process with 1, there are no transparent huge pages, and malloc
/// keeps 512 KiB of what was freed, until `malloc_trim`.
void csystem_prepare_process(void);

/// Whether the kernel is of this version or a later one.
int csystem_kernel_is(unsigned long major, unsigned long minor);

/// Give the whole pages in a range of private memory back to the kernel. They are zeros when they are read again.
void csystem_release_pages(void *_Nonnull address, size_t bytes);
/// The same with whatever malloc holds and nobody uses, and with the stack below the caller, of the first thread alone. It
/// takes about half a millisecond: call it when there is nothing else to do.
void csystem_release_unused_memory(void);

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

/// The number of a group of /etc/group; false when it has none of this name.
bool csystem_group_id(const char *_Nonnull name, gid_t *_Nonnull id);

/// Replace the file `name` (at most 54 bytes) of a directory and keep what it held as `name.old`. A cut at any moment leaves
/// the old or the new contents: a temporary file, synchronised, renamed over it, the directory synchronised. What root writes
/// belongs to the directory's owner. Gives 0 or an errno. `steps_left`: system calls that are still carried out, every later one fails with EIO; INT_MAX for all.
int csystem_replace_file(const char *_Nonnull directory, const char *_Nonnull name, const void *_Nullable bytes,
                         size_t length, mode_t mode, int *_Nullable steps_left);

/// The same on a thread of its own, one file at a time. The descriptor (eventfd(2)) is readable when a write has ended.
struct csystem_writer;
struct csystem_writer *_Nullable csystem_writer_new(const char *_Nonnull directory, const char *_Nonnull name, mode_t mode);
void csystem_writer_free(struct csystem_writer *_Nonnull writer);
int csystem_writer_descriptor(const struct csystem_writer *_Nonnull writer);
/// Begin a write of a copy of the bytes, when none is under way. Gives 0, or an errno when no thread can be made.
int csystem_writer_begin(struct csystem_writer *_Nonnull writer, const void *_Nullable bytes, size_t length);
/// Wait for the end of the write that was begun. Gives what it gave.
int csystem_writer_end(struct csystem_writer *_Nonnull writer);

/// gmtime_r(3): seconds since 1970 as a date in UTC; NULL with EOVERFLOW for a year that an int does not hold. The C
/// library's brings its time zones and number scanner along, 90 kB; board/sysroot.sh gives mbedTLS this one.
struct tm *_Nullable csystem_gmtime_r(const time_t *_Nonnull time, struct tm *_Nonnull parts);

/// timegm(3) for a month of 0…11: the date in UTC as seconds since 1970.
time_t csystem_timegm(const struct tm *_Nonnull parts);

/// open(2): variadic functions are closed to Swift. `mode` counts only when a file is made.
static inline int csystem_open(const char *_Nonnull path, int flags, mode_t mode) { return open(path, flags, mode); }

/// openat(2), likewise.
static inline int csystem_openat(int folder, const char *_Nonnull name, int flags, mode_t mode) {
  return openat(folder, name, flags, mode);
}

/// quotactl(2) of the file system of a file, without the path of its device. 0, or -1 with errno set.
static inline long csystem_quotactl_fd(int file, int command, uint32_t id, void *_Nonnull answer) {
  return syscall(SYS_quotactl_fd, file, command, id, answer);
}

/// The size of a terminal. 0, or -1 with errno set.
static inline int csystem_terminal_size(int descriptor, struct winsize *_Nonnull size) {
  return ioctl(descriptor, TIOCGWINSZ, size);
}

/// Let a UDP socket receive only messages of DHCP clients (RFC 2131) whose hardware address is the source address of the
/// Ethernet frame that brought them; the kernel drops all other datagrams. 0, or -1 with errno set.
int csystem_keep_own_hardware(int descriptor);

/// The Ethernet address of a neighbour by IPv4 on an interface, in the lower 48 bits; 0 where the kernel knows none. `socket`: any
/// of IPv4.
uint64_t csystem_neighbour(int socket, const char *_Nonnull interface, uint32_t address);

/// How many segments with data a TCP connection has sent, and how many of them again. False when the descriptor is none.
bool csystem_tcp_segments(int descriptor, uint32_t *_Nonnull sent, uint32_t *_Nonnull resent);

/// Names of enumerations and casts that Swift does not import.
static const int csystem_timer_cancel_on_set = TFD_TIMER_CANCEL_ON_SET;

static inline void csystem_set_errno(int code) { errno = code; }

/// argp_error(3): one line on stderr, a pointer to --help, and the end of the process.
static inline void csystem_argp_error(const struct argp_state *_Nullable state, const char *_Nonnull message) {
  argp_error(state, "%s", message);
}

/// The exit status of argp's own errors.
static inline void csystem_argp_set_error_status(int status) { argp_err_exit_status = status; }
