#include "CSystem.h"

enum {
  // What malloc keeps at hand for a thread (glibc's tcache): seven blocks of each of 64 sizes.
  KEPT_BYTES_MIN = 24,
  KEPT_BYTES_MAX = 1032,
  KEPT_STEP = 16,
  KEPT_OF_A_SIZE = 7,
  KEPT_MAX = KEPT_OF_A_SIZE * ((KEPT_BYTES_MAX - KEPT_BYTES_MIN) / KEPT_STEP + 1),
  // Below the frame of the caller: what the calls here need themselves, and how far the deepest ones ever went.
  STACK_KEPT_BYTES = 8192,
  STACK_BYTES_MAX = 131072,
};

void csystem_release_pages(void *address, size_t bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)address;
  uintptr_t first = (start + page - 1) / page * page, end = (start + bytes) / page * page;
  // Where it fails the pages stay, which is no harm.
  if (first < end) (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

static int higher_first(const void *one, const void *other) {
  uintptr_t a = *(const uintptr_t *)one, b = *(const uintptr_t *)other;
  return (a < b) - (a > b);
}

// As many blocks of each size as are kept: those that are, and others for the rest.
static size_t take_blocks(void *blocks[KEPT_MAX]) {
  size_t count = 0;
  for (size_t size = KEPT_BYTES_MIN; size <= KEPT_BYTES_MAX; size += KEPT_STEP) {
    for (int number = 0; number < KEPT_OF_A_SIZE; number++) {
      blocks[count] = malloc(size);
      if (blocks[count]) count++;
    }
  }
  return count;
}

// Blocks that are kept count as used, and each holds its page: malloc_trim passes them over, and nothing else empties them.
// So all are taken, then as many again, which lie side by side. Where the second ones are kept the first are freed for good.
// Then a second one that becomes longer than any that is kept is joined with what is free behind it, and freed for good too;
// from the highest on, so that what was behind it is free already.
static void free_kept_blocks(void) {
  void *first[KEPT_MAX], *second[KEPT_MAX];
  size_t first_count = take_blocks(first), count = take_blocks(second);
  for (size_t number = 0; number < count; number++) free(second[number]);
  for (size_t number = 0; number < first_count; number++) free(first[number]);
  count = take_blocks(second);
  qsort(second, count, sizeof *second, higher_first);
  for (size_t number = 0; number < count; number++) {
    void *longer = realloc(second[number], KEPT_BYTES_MAX + KEPT_STEP);
    free(longer ? longer : second[number]);
  }
}

void csystem_release_unused_memory(void) {
  free_kept_blocks();
  malloc_trim(0);
  // The kernel maps nothing else so near below the first thread's stack (sysctl.rst, stack_guard_gap: 256 pages).
  if (syscall(SYS_gettid) != getpid()) return;
  char *here = __builtin_frame_address(0);
  csystem_release_pages(here - STACK_BYTES_MAX, STACK_BYTES_MAX - STACK_KEPT_BYTES);
}
