#include "CSystem.h"

#include <sys/prctl.h>
#include <sys/utsname.h>

// A closed descriptor below 3 would be reused by the next file opened, and output for a terminal would end up in that
// file. The access mode is the opposite of the usual one on purpose: using such a descriptor still fails with EBADF.
static void reserve_descriptor(int number) {
  if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) return;
  if (open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) (void)!open("/", O_PATH | O_DIRECTORY);
}

// argp prints help through stdio and exits with success even if the output could not be written.
static void check_output(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  if (errno != EPIPE) dprintf(STDERR_FILENO, "causeway: standard output: %s\n", strerror(errno));
  _exit(1);
}

void csystem_prepare_process(void) {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) reserve_descriptor(number);
  signal(SIGPIPE, SIG_IGN);
  atexit(check_output);
  // Where the kernel's default is "always", a few used pages of a mapping would become huge pages of 2 MiB each.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  // The parts of a file are allocated and freed over and over. Memory that went back to the kernel each time would be
  // cleared again.
  mallopt(M_TRIM_THRESHOLD, 512 * 1024);
}

int csystem_kernel_is(unsigned long major, unsigned long minor) {
  struct utsname names;
  if (uname(&names) != 0) return 0;
  char *rest;
  unsigned long first = strtoul(names.release, &rest, 10);
  unsigned long second = *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0;
  return first > major || (first == major && second >= minor);
}
