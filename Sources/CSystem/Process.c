#include "CSystem.h"

#include <sys/prctl.h>
#include <sys/utsname.h>

// If a descriptor below 3 is closed, the next opened file would get its number. Output for a terminal would then be
// written to that file. So the descriptor is opened on /dev/null. The access mode is deliberately the opposite of the
// usual mode, so that reads or writes of the descriptor still fail with EBADF.
static void reserve_descriptor(int number) {
  if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) return;
  if (open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) (void)!open("/", O_PATH | O_DIRECTORY);
}

// argp prints help through stdio and exits with status 0 even if the output could not be written.
static void check_output(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  if (errno != EPIPE) dprintf(STDERR_FILENO, "causeway: standard output: %s\n", strerror(errno));
  _exit(1);
}

void csystem_prepare_process(void) {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) reserve_descriptor(number);
  signal(SIGPIPE, SIG_IGN);
  atexit(check_output);
  // If the kernel's default for transparent huge pages is "always", a few used pages of a mapping would become huge
  // pages of 2 MiB each.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  // A transfer allocates and frees memory for each part of a file. If malloc returned this memory to the kernel each
  // time, the kernel would clear the memory for each new part.
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
