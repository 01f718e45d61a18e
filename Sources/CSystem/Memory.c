#include "CSystem.h"

enum {
  // The freed blocks that malloc caches for a thread (glibc's tcache): seven blocks of each of 64 sizes.
  KEPT_BYTES_MIN = 24,
  KEPT_BYTES_MAX = 1032,
  KEPT_STEP = 16,
  KEPT_OF_A_SIZE = 7,
  KEPT_MAX = KEPT_OF_A_SIZE * ((KEPT_BYTES_MAX - KEPT_BYTES_MIN) / KEPT_STEP + 1),
  // Stack below the caller's frame: the bytes that the calls here need themselves, and the depth of the deepest calls
  // ever.
  STACK_KEPT_BYTES = 8192,
  STACK_BYTES_MAX = 131072,
};

void csystem_release_pages(void *address, size_t bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)address;
  uintptr_t first = (start + page - 1) / page * page, end = (start + bytes) / page * page;
  // If this fails, the pages stay in memory, which is harmless.
  if (first < end) (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

static int higher_first(const void *one, const void *other) {
  uintptr_t a = *(const uintptr_t *)one, b = *(const uintptr_t *)other;
  return (a < b) - (a > b);
}

// Allocates as many blocks of each size as the cache can hold: first those in the cache, then new ones.
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

// Cached blocks count as used, and each of them keeps its page in memory. malloc_trim skips them, and nothing else
// empties the cache. So this function allocates all cached blocks, and then as many again, which lie side by side.
//
// The second set is freed first and fills the cache, so the first set is really freed. Then each block of the second
// set is allocated again and made longer than any cached size. That joins it with the free memory behind it, and
// freeing it bypasses the cache. The order is from the highest address down, so that the memory behind each block is
// already free.
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
  // The kernel maps nothing else this close below the first thread's stack (sysctl.rst, stack_guard_gap: 256 pages).
  if (syscall(SYS_gettid) != getpid()) return;
  char *here = __builtin_frame_address(0);
  csystem_release_pages(here - STACK_BYTES_MAX, STACK_BYTES_MAX - STACK_KEPT_BYTES);
}
