#include "CSystem.h"

#include <limits.h>
#include <pthread.h>

// The stack size of the writer thread, in bytes. The thread uses little stack, and the C library requires at least 16
// KiB.
enum { STACK_BYTES = 65536 };

struct steps {
  int *left;
};

static bool may_step(struct steps steps) {
  if (!steps.left || *steps.left == INT_MAX) return true;
  if (*steps.left == 0) {
    errno = EIO;
    return false;
  }
  (*steps.left)--;
  return true;
}

#define STEP(call) (may_step(steps) ? (call) : -1)

static int write_whole(int descriptor, const char *bytes, size_t length, struct steps steps) {
  while (length > 0) {
    ssize_t count = STEP(write(descriptor, bytes, length));
    if (count < 0 && errno != EINTR) return -1;
    if (count > 0) {
      bytes += count;
      length -= (size_t)count;
    }
  }
  return STEP(fsync(descriptor));
}

// A command that root runs writes files for the daemon, so the new file gets the owner of the directory.
static int give_to_owner(int directory, int descriptor, struct steps steps) {
  struct stat status;
  if (geteuid() != 0) return 0;
  if (fstat(directory, &status) != 0) return -1;
  if (status.st_uid == 0) return 0;
  return STEP(fchown(descriptor, status.st_uid, status.st_gid));
}

static int replace_in(int directory, const char *name, const void *bytes, size_t length, mode_t mode, struct steps steps) {
  char fresh[64], previous[64], previous_fresh[64];
  if (strlen(name) > sizeof fresh - 10) return ENAMETOOLONG;
  snprintf(fresh, sizeof fresh, "%s.new", name);
  snprintf(previous, sizeof previous, "%s.old", name);
  snprintf(previous_fresh, sizeof previous_fresh, "%s.old.new", name);
  (void)STEP(unlinkat(directory, fresh, 0));
  int descriptor = STEP(openat(directory, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (descriptor < 0) return errno;
  int code = give_to_owner(directory, descriptor, steps) < 0 || write_whole(descriptor, bytes, length, steps) < 0 ? errno : 0;
  close(descriptor);
  if (code == 0) {
    // The previous contents also get their name by a rename, so a file `name.old` exists at every moment. On a file
    // system without hard links, no previous contents are kept.
    (void)STEP(unlinkat(directory, previous_fresh, 0));
    if (STEP(linkat(directory, name, directory, previous_fresh, 0)) == 0)
      (void)STEP(renameat(directory, previous_fresh, directory, previous));
    if (STEP(renameat(directory, fresh, directory, name)) == 0) return STEP(fsync(directory)) == 0 ? 0 : errno;
    code = errno;
  }
  (void)STEP(unlinkat(directory, fresh, 0));
  return code;
}

int csystem_replace_file(const char *directory, const char *name, const void *bytes, size_t length, mode_t mode,
                         int *steps_left) {
  struct steps steps = {steps_left};
  int descriptor = STEP(open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor < 0) return errno;
  int code = replace_in(descriptor, name, bytes, length, mode, steps);
  close(descriptor);
  return code;
}

struct csystem_writer {
  char *directory, *name, *bytes;
  size_t length;
  mode_t mode;
  int code, ended;
  pthread_t thread;
};

struct csystem_writer *csystem_writer_new(const char *directory, const char *name, mode_t mode) {
  struct csystem_writer *writer = calloc(1, sizeof *writer);
  if (!writer) return NULL;
  writer->directory = strdup(directory);
  writer->name = strdup(name);
  writer->mode = mode;
  writer->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (writer->directory && writer->name && writer->ended >= 0) return writer;
  csystem_writer_free(writer);
  return NULL;
}

void csystem_writer_free(struct csystem_writer *writer) {
  if (writer->ended >= 0) close(writer->ended);
  free(writer->directory);
  free(writer->name);
  free(writer->bytes);
  free(writer);
}

int csystem_writer_descriptor(const struct csystem_writer *writer) { return writer->ended; }

static void *run(void *argument) {
  struct csystem_writer *writer = argument;
  writer->code =
    csystem_replace_file(writer->directory, writer->name, writer->bytes, writer->length, writer->mode, NULL);
  uint64_t one = 1;
  (void)!write(writer->ended, &one, sizeof one);
  return NULL;
}

int csystem_writer_begin(struct csystem_writer *writer, const void *bytes, size_t length) {
  writer->bytes = malloc(length);
  if (!writer->bytes) return ENOMEM;
  memcpy(writer->bytes, bytes, length);
  writer->length = length;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  // All signals are blocked in the new thread, because only the reactor handles signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&writer->thread, &attributes, run, writer);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (code != 0) {
    free(writer->bytes);
    writer->bytes = NULL;
  }
  return code;
}

int csystem_writer_end(struct csystem_writer *writer) {
  pthread_join(writer->thread, NULL);
  uint64_t count;
  (void)!read(writer->ended, &count, sizeof count);
  free(writer->bytes);
  writer->bytes = NULL;
  return writer->code;
}
