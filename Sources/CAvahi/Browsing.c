#include "CAvahi.h"

// What n boxes that browse for one type cost each other: each asks again after 1, 2, 4, … seconds and lists the n services
// that it knows. The names are the linker's: calls within libavahi-core arrive here, because every program is linked with
// --wrap (Package.swift). libavahi-core runs in the reactor's thread alone, so nothing here is locked.

// Empty until the service is published, and if its names are too long: then libavahi-core does as it always does.
static char own_type[AVAHI_DOMAIN_NAME_MAX], own_service[AVAHI_DOMAIN_NAME_MAX];

void cavahi_set_own_service(const char *name, const char *type) {
  if (avahi_service_name_join(own_type, sizeof own_type, NULL, type, "local") < 0 ||
      avahi_service_name_join(own_service, sizeof own_service, name, type, "local") < 0)
    own_type[0] = own_service[0] = 0;
}

// Names of both sides are in the one form in which libavahi writes escapes.
static int is_browsed(const AvahiKey *key) {
  return key->type == AVAHI_DNS_TYPE_PTR && key->clazz == AVAHI_DNS_CLASS_IN && strcasecmp(key->name, own_type) == 0;
}

static int is_own(const AvahiRecord *record) { return strcasecmp(record->data.ptr.name, own_service) == 0; }

// libavahi-core notes each answer that an asker knows (RFC 6762, section 7.1), which keeps it from giving that answer. It
// notes the answers of others, too, and compares each new one with all of the last 0.7 s: from 40 boxes on that takes all
// processors. Of the services of our type only our own matters.
void __real_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker) {
  if (is_browsed(record->key) && !is_own(record)) return;
  __real_avahi_response_scheduler_suppress(scheduler, record, asker);
}

// It compares names by taking both apart label by label, whether they have escapes or not: with n services in the cache
// each record of an answer is compared with n others.
int __real_avahi_domain_equal(const char *one, const char *other);
int __wrap_avahi_domain_equal(const char *one, const char *other);

static int is_plain(const char *name) {
  size_t length = strlen(name);
  return length > 0 && name[length - 1] != '.' && !memchr(name, '\\', length);
}

int __wrap_avahi_domain_equal(const char *one, const char *other) {
  if (is_plain(one) && is_plain(other)) return strcasecmp(one, other) == 0;
  return __real_avahi_domain_equal(one, other);
}

// Duplicate question suppression (RFC 6762, section 7.3): a question is not repeated if another node has asked it since
// this one did, and listed no service that this one does not know. libavahi-core does that only for questions without any
// known answer, within 0.1 s: n boxes asked n times, n lists of n services, and lost some of the packets.

typedef struct AvahiInterface AvahiInterface;
typedef struct AvahiCache AvahiCache;
typedef struct AvahiCacheEntry AvahiCacheEntry;
typedef void *AvahiCacheWalkCallback(AvahiCache *cache, AvahiKey *key, AvahiCacheEntry *entry, void *userdata);

// How these structures begin (cache.h of 0.8, the version in NOTICE).
struct AvahiCache {
  AvahiServer *server;
  AvahiInterface *interface;
};
struct AvahiCacheEntry {
  AvahiCache *cache;
  AvahiRecord *record;
};

void *avahi_cache_walk(AvahiCache *cache, AvahiKey *key, AvahiCacheWalkCallback *callback, void *userdata);

// Interfaces on which this node has asked, each once for IPv4 and for IPv6. On further ones it always asks. The first
// question takes a place; avahi_querier_free_all gives it back, which libavahi-core calls before it frees an interface.
#define INTERFACES_MAX 32
static struct {
  const AvahiInterface *interface;
  int others_asked;
} asked[INTERFACES_MAX];

// NULL finds a free place.
static int find(const AvahiInterface *interface) {
  for (int index = 0; index < INTERFACES_MAX; index++)
    if (asked[index].interface == interface) return index;
  return -1;
}

static void note(const AvahiInterface *interface, int others_asked) {
  int index = find(interface);
  if (index >= 0) asked[index].others_asked = others_asked;
}

// "Passive observation of failures" (RFC 6762, section 10.5) is left out for our services. libavahi-core counts questions
// that nobody answered, but takes those back whose known answers come in later packets only if all arrive and no other node
// asks meanwhile: services were lost that were there. A dial that fails looks its service up again.

// A question was heard. Its known answers follow, perhaps in packets of their own.
void __real_avahi_cache_start_poof(AvahiCache *cache, AvahiKey *key, const AvahiAddress *asker);
void __wrap_avahi_cache_start_poof(AvahiCache *cache, AvahiKey *key, const AvahiAddress *asker);
void __wrap_avahi_cache_start_poof(AvahiCache *cache, AvahiKey *key, const AvahiAddress *asker) {
  if (is_browsed(key))
    note(cache->interface, 1);
  else
    __real_avahi_cache_start_poof(cache, key, asker);
}

static void *entry_of(AvahiCache *cache, AvahiKey *key, AvahiCacheEntry *entry, void *service) {
  (void)cache;
  (void)key;
  return strcasecmp(entry->record->data.ptr.name, service) == 0 ? entry : NULL;
}

// An asker knows this answer. Who has it will not give it.
void __real_avahi_cache_stop_poof(AvahiCache *cache, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_cache_stop_poof(AvahiCache *cache, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_cache_stop_poof(AvahiCache *cache, AvahiRecord *record, const AvahiAddress *asker) {
  if (!is_browsed(record->key))
    __real_avahi_cache_stop_poof(cache, record, asker);
  else if (!is_own(record) && !avahi_cache_walk(cache, record->key, entry_of, record->data.ptr.name))
    note(cache->interface, 0);
}

// A question is due: `immediately` when cached answers expire, otherwise after 0.1 s. Only the first one of an interface,
// which many ask at the same time, has reason to wait. A later one goes out at once, so that others hear it before
// theirs are due. 0 says that none was queued.
int __real_avahi_interface_post_query(AvahiInterface *interface, AvahiKey *key, int immediately, unsigned *id);
int __wrap_avahi_interface_post_query(AvahiInterface *interface, AvahiKey *key, int immediately, unsigned *id);
int __wrap_avahi_interface_post_query(AvahiInterface *interface, AvahiKey *key, int immediately, unsigned *id) {
  if (is_browsed(key)) {
    int index = find(interface);
    if (index >= 0) {
      int is_asked = asked[index].others_asked;
      asked[index].others_asked = 0;
      if (is_asked && !immediately) return 0;
      immediately = 1;
    } else if ((index = find(NULL)) >= 0) {
      asked[index].interface = interface;
    }
  }
  return __real_avahi_interface_post_query(interface, key, immediately, id);
}

// An interface is about to be freed, or may not be used any more.
void __real_avahi_querier_free_all(AvahiInterface *interface);
void __wrap_avahi_querier_free_all(AvahiInterface *interface);
void __wrap_avahi_querier_free_all(AvahiInterface *interface) {
  note(interface, 0);
  int index = find(interface);
  if (index >= 0) asked[index].interface = NULL;
  __real_avahi_querier_free_all(interface);
}
