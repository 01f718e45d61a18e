// The reference counts of Swift objects in the firmware, without atomic instructions. Only one thread uses Swift
// objects; the thread of StateFile.c uses none. With atomic counts, the daemon needs a tenth more processor time to
// transfer a file on x86_64. On ARM cores before ARMv8.1, such as those of a Raspberry Pi 4 and a Zero 2 W, each atomic
// operation is a loop of instructions.
//
// The functions in this file replace the weak symbols of the Embedded Swift runtime. These functions follow the rules
// of Swift 6.3 (stdlib/public/core/EmbeddedRuntime.swift):
// - An object begins with a pointer to its metadata, followed by its reference count.
// - A null or negative pointer is not an object.
// - An object is never destroyed if all bits of its count below the highest bit are set.
// - The second word of the metadata is the function that destroys the object.
//
// `causeway selftest` checks these functions.
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
  // Retains and releases during the destruction must not destroy the object again.
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
