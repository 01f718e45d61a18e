#include "CAvahi.h"

// Reduces what n boxes that browse for one type cost each other. Each repeats its question after 1, 2, 4, … seconds,
// and lists the n services that it knows.
//
// The linker prescribes the names: every program is linked with --wrap (Package.swift), so calls within libavahi-core
// arrive here. libavahi-core runs only on the reactor's thread, so nothing here is locked.

// Empty until the service is published, and if its names are too long. libavahi-core then behaves as usual.
static char own_type[AVAHI_DOMAIN_NAME_MAX], own_service[AVAHI_DOMAIN_NAME_MAX];

void cavahi_set_own_service(const char *name, const char *type) {
  if (avahi_service_name_join(own_type, sizeof own_type, NULL, type, "local") < 0 ||
      avahi_service_name_join(own_service, sizeof own_service, name, type, "local") < 0)
    own_type[0] = own_service[0] = 0;
}

// Both names are in the form in which libavahi writes escapes.
static int is_browsed(const AvahiKey *key) {
  return key->type == AVAHI_DNS_TYPE_PTR && key->clazz == AVAHI_DNS_CLASS_IN && strcasecmp(key->name, own_type) == 0;
}

static int is_own(const AvahiRecord *record) { return strcasecmp(record->data.ptr.name, own_service) == 0; }

// libavahi-core notes each answer that an asker already knows (RFC 6762, section 7.1) and does not send it. It also
// notes the answers of other nodes, and compares each new one with all of the last 0.7 s. From 40 boxes on that takes
// all processors. Among the services of our type only our own matters.
void __real_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker) {
  if (is_browsed(record->key) && !is_own(record)) return;
  __real_avahi_response_scheduler_suppress(scheduler, record, asker);
}

// libavahi-core compares names by splitting both into labels, even if they have no escapes. With n services in the
// cache, each record of an answer is compared with n others. Names without escapes are compared directly.
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

// Duplicate question suppression (RFC 6762, section 7.3). A question is not repeated if another node has asked it since
// this node did, and listed no service that this node does not know.
//
// libavahi-core suppresses only questions without any known answer, within 0.1 s. So n boxes asked n times, with n
// lists of n services, and some of the packets were lost.

typedef struct AvahiInterface AvahiInterface;
typedef struct AvahiCache AvahiCache;
typedef struct AvahiCacheEntry AvahiCacheEntry;
typedef void *AvahiCacheWalkCallback(AvahiCache *cache, AvahiKey *key, AvahiCacheEntry *entry, void *userdata);

// The beginning of these structures (cache.h of 0.8, the version in NOTICE).
struct AvahiCache {
  AvahiServer *server;
  AvahiInterface *interface;
};
struct AvahiCacheEntry {
  AvahiCache *cache;
  AvahiRecord *record;
};

void *avahi_cache_walk(AvahiCache *cache, AvahiKey *key, AvahiCacheWalkCallback *callback, void *userdata);

// Interfaces on which this node has asked, each once for IPv4 and once for IPv6. On interfaces beyond the limit it
// always asks. The first question takes an entry. avahi_querier_free_all, which libavahi-core calls before it frees an
// interface, releases it.
#define INTERFACES_MAX 32
static struct {
  const AvahiInterface *interface;
  int others_asked;
} asked[INTERFACES_MAX];

// The index of an interface's entry, or of a free one for NULL; -1 if there is none.
static int find(const AvahiInterface *interface) {
  for (int index = 0; index < INTERFACES_MAX; index++)
    if (asked[index].interface == interface) return index;
  return -1;
}

static void note(const AvahiInterface *interface, int others_asked) {
  int index = find(interface);
  if (index >= 0) asked[index].others_asked = others_asked;
}

// "Passive observation of failures" (RFC 6762, section 10.5) is left out for our services. libavahi-core counts
// questions that nobody answered. Known answers that come in later packets should cancel the count. libavahi-core
// cancels it only if all of them arrive and no other node asks meanwhile, so it lost services that still existed. Here,
// a dial that fails looks its service up again.

// A question was received. Its known answers follow, perhaps in packets of their own.
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

// The asker knows this answer, so the node that has it will not send it. If it is new to this node, this node must ask.
void __real_avahi_cache_stop_poof(AvahiCache *cache, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_cache_stop_poof(AvahiCache *cache, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_cache_stop_poof(AvahiCache *cache, AvahiRecord *record, const AvahiAddress *asker) {
  if (!is_browsed(record->key))
    __real_avahi_cache_stop_poof(cache, record, asker);
  else if (!is_own(record) && !avahi_cache_walk(cache, record->key, entry_of, record->data.ptr.name))
    note(cache->interface, 0);
}

// A question is due: `immediately` when cached answers expire, otherwise after 0.1 s. Only the first question on an
// interface has reason to wait, because many nodes ask it at the same time. A later one is sent at once, so that other
// nodes receive it before theirs are due. Returns 0 if no question was queued.
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

// An interface is about to be freed, or becomes unusable.
void __real_avahi_querier_free_all(AvahiInterface *interface);
void __wrap_avahi_querier_free_all(AvahiInterface *interface);
void __wrap_avahi_querier_free_all(AvahiInterface *interface) {
  note(interface, 0);
  int index = find(interface);
  if (index >= 0) asked[index].interface = NULL;
  __real_avahi_querier_free_all(interface);
}
