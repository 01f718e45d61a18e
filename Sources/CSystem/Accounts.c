#include "CSystem.h"

#include <grp.h>
#include <sys/syscall.h>

bool csystem_group_id(const char *name, gid_t *id) {
  FILE *file = fopen("/etc/group", "re");
  if (!file) return false;
  const struct group *entry;
  while ((entry = fgetgrent(file)) && strcmp(entry->gr_name, name) != 0) continue;
  if (entry) *id = entry->gr_gid;
  fclose(file);
  return entry != NULL;
}

// The C library's functions change the user of all threads, so these are system calls.
int csystem_open_error(const char *path, uid_t user, gid_t group, const gid_t *groups, size_t group_count) {
  gid_t own[NGROUPS_MAX];
  int own_count = getgroups(NGROUPS_MAX, own);
  if (own_count < 0) return errno;
  gid_t own_group = getegid();
  uid_t own_user = geteuid();
  int result = 0;
  if (syscall(SYS_setgroups, group_count, groups) != 0) return errno;
  if (syscall(SYS_setresgid, -1, group, -1) != 0 || syscall(SYS_setresuid, -1, user, -1) != 0) result = errno;
  if (result == 0) {
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) result = errno;
    else close(descriptor);
  }
  // A process that remained another user would act with the wrong permissions.
  if (syscall(SYS_setresuid, -1, own_user, -1) != 0 || syscall(SYS_setresgid, -1, own_group, -1) != 0 ||
      syscall(SYS_setgroups, own_count, own) != 0)
    abort();
  return result;
}
