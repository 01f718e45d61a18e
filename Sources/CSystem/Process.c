#include "CSystem.h"

#include <sys/prctl.h>
#include <sys/utsname.h>

// A number below 3 that is closed would be given to the next file that is opened, and what is meant for a terminal would
// end up in it. The way is the wrong one on purpose: who uses such a descriptor still gets EBADF.
static void reserve_descriptor(int number) {
  if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) return;
  if (open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) (void)!open("/", O_PATH | O_DIRECTORY);
}

// argp prints help by stdio and ends the process as if nothing could go wrong.
static void check_output(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  if (errno != EPIPE) dprintf(STDERR_FILENO, "causeway: standard output: %s\n", strerror(errno));
  _exit(1);
}

void csystem_prepare_process(void) {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) reserve_descriptor(number);
  signal(SIGPIPE, SIG_IGN);
  atexit(check_output);
  // A few pages that are used in a mapping would become 2 MiB each, where the kernel's default is "always".
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  // The pieces of a file are taken and freed over and over: memory that went back to the kernel each time would be cleared again.
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
