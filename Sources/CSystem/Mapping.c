#include "CSystem.h"

static char *mapping;
static size_t mapping_bytes;
static volatile sig_atomic_t mapping_is_lost;
static void (*other_bus_error)(int);

// When a mapped file is truncated, an access to the lost pages raises SIGBUS (mmap(2)). This handler replaces the
// complete mapping by anonymous memory at the same address. The access is repeated when the handler returns.
static void bus_error(int number, siginfo_t *info, void *context) {
  (void)context;
  int saved = errno;
  char *address = info->si_addr;
  if (mapping && address >= mapping && address < mapping + mapping_bytes &&
      mmap(mapping, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mapping) {
    mapping_is_lost = 1;
    errno = saved;
    return;
  }
  signal(number, SIG_DFL);
  if (other_bus_error) other_bus_error(number);
}

void csystem_keep_mapping(void *address, size_t bytes) {
  mapping = address;
  mapping_bytes = bytes;
  mapping_is_lost = 0;
  struct sigaction action = {.sa_sigaction = bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigemptyset(&action.sa_mask);
  if (address) sigaction(SIGBUS, &action, NULL);
}

bool csystem_mapping_is_lost(void) { return mapping_is_lost; }

void csystem_on_other_bus_error(void (*handler)(int)) { other_bus_error = handler; }
