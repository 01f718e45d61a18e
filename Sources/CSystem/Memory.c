#include "CSystem.h"

enum {
  // The freed blocks that malloc caches for a thread (glibc's tcache): seven blocks of each of 64 sizes in bytes.
  KEPT_BYTES_MIN = 24,
  KEPT_BYTES_MAX = 1032,
  KEPT_STEP = 16,
  KEPT_OF_A_SIZE = 7,
  KEPT_MAX = KEPT_OF_A_SIZE * ((KEPT_BYTES_MAX - KEPT_BYTES_MIN) / KEPT_STEP + 1),
  // Bytes of stack below the caller's frame: those that the functions of this file may still use, and the greatest
  // depth of any calls.
  STACK_KEPT_BYTES = 8192,
  STACK_BYTES_MAX = 131072,
};

void csystem_release_pages(void *address, size_t bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)address;
  uintptr_t first = (start + page - 1) / page * page, end = (start + bytes) / page * page;
  // If madvise fails, the pages stay in memory, which is harmless.
  if (first < end) (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

static int higher_first(const void *one, const void *other) {
  uintptr_t a = *(const uintptr_t *)one, b = *(const uintptr_t *)other;
  return (a < b) - (a > b);
}

// Allocates as many blocks of each size as the cache has room for. malloc returns the cached blocks first, and then new
// blocks.
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

// malloc treats cached blocks as used, so each of them keeps its page in memory. malloc_trim skips cached blocks, and
// no function empties the cache. So this function allocates all cached blocks (the first set), and then the same number
// of blocks again (the second set). The blocks of the second set are adjacent.
//
// The second set is freed first and fills the cache, so freeing the first set bypasses the cache. After that, the
// blocks of the second set are allocated again. Each block of the second set is made longer than any cached size, which
// joins the block with the free memory behind it. Freeing a long block also bypasses the cache. The order is from the
// highest address down, so that the memory behind each block is already free.
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
  // Only the first thread's stack may be released. The kernel maps nothing else this close below that stack (kernel
  // parameter stack_guard_gap: 256 pages).
  if (syscall(SYS_gettid) != getpid()) return;
  char *here = __builtin_frame_address(0);
  csystem_release_pages(here - STACK_BYTES_MAX, STACK_BYTES_MAX - STACK_KEPT_BYTES);
}
