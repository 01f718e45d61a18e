// System headers for the rim, and functions for macros, variadic functions and other things that Swift cannot use
// directly.
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

/// The calling thread's errno. In C, errno is a macro, which Swift does not import.
static inline int csystem_errno(void) { return errno; }

/// The arguments of the process. Embedded Swift has no CommandLine, but glibc passes argc and argv to constructors.
int csystem_argc(void);
char *_Nullable *_Nonnull csystem_argv(void);

/// Prepares the process. Every command calls this function first. The function opens each of the descriptors 0 to 2
/// that is closed, ignores SIGPIPE and disables transparent huge pages. From this call on, malloc keeps up to 512 KiB
/// of freed memory until `malloc_trim`. If stdio cannot write its output, the process exits with status 1.
void csystem_prepare_process(void);

/// Whether the kernel has this version or a later version.
int csystem_kernel_is(unsigned long major, unsigned long minor);

/// Returns the complete pages in a range of private memory to the kernel. The returned pages read as zeros afterwards.
void csystem_release_pages(void *_Nonnull address, size_t bytes);
/// Returns memory to the kernel: the freed memory that malloc keeps and, on the first thread, the unused stack below
/// the caller. The call takes about 0.5 ms, so the caller should have nothing else to do.
void csystem_release_unused_memory(void);

/// Keeps a mapping of `bytes` bytes at `address` usable even if the mapped file is truncated. After a truncation, all
/// pages of the mapping are replaced by zeros at the next access to a lost page. `csystem_mapping_is_lost` then returns
/// true. A process can protect one mapping at a time. NULL ends the protection.
void csystem_keep_mapping(void *_Nullable address, size_t bytes);
bool csystem_mapping_is_lost(void);
/// Sets the handler for a SIGBUS outside the protected mapping. The handler is called before the default action.
void csystem_on_other_bus_error(void (*_Nullable handler)(int));

/// Moves a complete mapping to a fixed address by mremap(2), where it replaces any mapping that exists. Returns false
/// with errno set if the move fails.
static inline bool csystem_move_mapping(void *_Nonnull from, size_t bytes, void *_Nonnull to) {
  return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

/// Opens a file for reading as another user, and closes it. Returns 0 or an errno. Only the calling thread acts as that
/// user, and only during the call. Needs root.
int csystem_open_error(
    const char *_Nonnull path, uid_t user, gid_t group, const gid_t *_Nullable groups, size_t group_count);

/// Finds the ID of a group in /etc/group. Returns false if no group has this name.
bool csystem_group_id(const char *_Nonnull name, gid_t *_Nonnull id);

/// Replaces the file `name` (at most 54 bytes) in a directory and keeps the previous contents as `name.old`. An
/// interruption at any moment leaves either the old or the new contents. For atomic replacement, the function writes,
/// synchronises and renames a temporary file, and synchronises the directory. A file written by root gets the owner of
/// the directory.
///
/// Returns 0 or an errno. `steps_left` is for tests: the number of system calls that are carried out before each
/// further call fails with EIO. INT_MAX or NULL means no limit.
int csystem_replace_file(const char *_Nonnull directory, const char *_Nonnull name, const void *_Nullable bytes,
                         size_t length, mode_t mode, int *_Nullable steps_left);

/// A writer that replaces a file like `csystem_replace_file`, but on its own thread, with one write at a time. The
/// descriptor of the writer (eventfd(2)) becomes readable when a write has ended.
struct csystem_writer;
struct csystem_writer *_Nullable csystem_writer_new(const char *_Nonnull directory, const char *_Nonnull name, mode_t mode);
void csystem_writer_free(struct csystem_writer *_Nonnull writer);
int csystem_writer_descriptor(const struct csystem_writer *_Nonnull writer);
/// Begins to write a copy of the bytes. The previous write must have been completed by `csystem_writer_end`. Returns 0,
/// or an errno if the memory or the thread cannot be created.
int csystem_writer_begin(struct csystem_writer *_Nonnull writer, const void *_Nullable bytes, size_t length);
/// Waits for the end of the write. Returns the result of the write: 0 or an errno.
int csystem_writer_end(struct csystem_writer *_Nonnull writer);

/// gmtime_r(3): converts seconds since 1970 to a date in UTC. Returns NULL with EOVERFLOW if the year does not fit into
/// an int. The C library's function adds 90 kB for time zones and a number scanner. So board/build/sysroot.sh renames
/// mbedTLS's calls to this function.
struct tm *_Nullable csystem_gmtime_r(const time_t *_Nonnull time, struct tm *_Nonnull parts);

/// timegm(3): converts a date in UTC to seconds since 1970. The month must be 0 to 11.
time_t csystem_timegm(const struct tm *_Nonnull parts);

/// Calls open(2), because Swift cannot call variadic functions. `mode` is used only when a file is created.
static inline int csystem_open(const char *_Nonnull path, int flags, mode_t mode) { return open(path, flags, mode); }

/// Calls openat(2), because Swift cannot call variadic functions.
static inline int csystem_openat(int folder, const char *_Nonnull name, int flags, mode_t mode) {
  return openat(folder, name, flags, mode);
}

/// Calls quotactl_fd(2), which needs an open file of the file system instead of the path of its device. Returns 0, or
/// -1 with errno set.
static inline long csystem_quotactl_fd(int file, int command, uint32_t id, void *_Nonnull answer) {
  return syscall(SYS_quotactl_fd, file, command, id, answer);
}

/// Reads the size of a terminal. Returns 0, or -1 with errno set.
static inline int csystem_terminal_size(int descriptor, struct winsize *_Nonnull size) {
  return ioctl(descriptor, TIOCGWINSZ, size);
}

/// Makes a UDP socket receive only DHCP messages (RFC 2131) whose client hardware address equals the source address of
/// their Ethernet frame. The kernel drops all other datagrams of the socket. Returns 0, or -1 with errno set.
int csystem_keep_own_hardware(int descriptor);

/// The Ethernet address of an IPv4 neighbour on an interface, in the lower 48 bits. Returns 0 if the kernel does not
/// know the neighbour's address. `socket` is any IPv4 socket.
uint64_t csystem_neighbour(int socket, const char *_Nonnull interface, uint32_t address);

/// Reads how many data segments a TCP connection has sent, and how many segments it has retransmitted. Returns false if
/// the descriptor is not a TCP connection.
bool csystem_tcp_segments(int descriptor, uint32_t *_Nonnull sent, uint32_t *_Nonnull resent);

/// A constant that Swift does not import.
static const int csystem_timer_cancel_on_set = TFD_TIMER_CANCEL_ON_SET;

static inline void csystem_set_errno(int code) { errno = code; }

/// Calls argp_error, which writes the message and a hint to use --help to stderr, and ends the process.
static inline void csystem_argp_error(const struct argp_state *_Nullable state, const char *_Nonnull message) {
  argp_error(state, "%s", message);
}

/// Sets the exit status with which argp reports its own errors.
static inline void csystem_argp_set_error_status(int status) { argp_err_exit_status = status; }
