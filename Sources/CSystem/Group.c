#include "CSystem.h"

#include <grp.h>

bool csystem_group_id(const char *name, gid_t *id) {
  FILE *file = fopen("/etc/group", "re");
  if (!file) return false;
  const struct group *entry;
  while ((entry = fgetgrent(file)) && strcmp(entry->gr_name, name) != 0) continue;
  if (entry) *id = entry->gr_gid;
  fclose(file);
  return entry != NULL;
}
