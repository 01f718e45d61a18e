// The reference counts of Swift objects in the firmware, without atomic instructions: one thread alone uses Swift objects, and the
// thread of StateFile.c none. With atomic counts a daemon takes a tenth more time for a file on x86_64. On ARM cores before ARMv8.1, as
// those of a Raspberry Pi 4 and a Zero 2 W, each is a loop.
//
// These functions replace those of the Embedded Swift runtime, which are weak symbols. Their rules are those of Swift 6.3
// (stdlib/public/core/EmbeddedRuntime.swift): an object begins with its metadata and its count; a pointer that is null or negative is no
// object; a count of which all bits but the highest are ones belongs to an object that lives for ever; the second word of the
// metadata is the function that destroys it. `causeway selftest` checks them.
#ifdef CAUSEWAY_EMBEDDED
#include <stdint.h>

typedef struct SwiftObject SwiftObject;

typedef struct {
  const void *superclass;
  __attribute__((swiftcall)) void (*destroy)(__attribute__((swift_context)) SwiftObject *);
} SwiftMetadata;

struct SwiftObject {
  const SwiftMetadata *metadata;
  uintptr_t count;
};

SwiftObject *swift_retain(SwiftObject *object);
SwiftObject *swift_retain_n(SwiftObject *object, uint32_t times);
void swift_release(SwiftObject *object);
void swift_release_n(SwiftObject *object, uint32_t times);

static inline int isCounted(const SwiftObject *object) { return (intptr_t)object > 0 && ~object->count << 1 != 0; }

static inline void release(SwiftObject *object, uint32_t times) {
  if (!isCounted(object)) return;
  uintptr_t count = object->count - times;
  if (count << 1 != 0) {
    object->count = count;
    return;
  }
  // What its destruction retains and releases does not destroy it again.
  object->count |= UINTPTR_MAX >> 1;
  object->metadata->destroy(object);
}

SwiftObject *swift_retain(SwiftObject *object) {
  if (isCounted(object)) object->count++;
  return object;
}

SwiftObject *swift_retain_n(SwiftObject *object, uint32_t times) {
  if (isCounted(object)) object->count += times;
  return object;
}

void swift_release(SwiftObject *object) { release(object, 1); }

void swift_release_n(SwiftObject *object, uint32_t times) { release(object, times); }
#endif
