#include "CAvahi.h"

// Reduces the load that n boxes put on each other when all browse for the same service type. Each box repeats its mDNS
// question after 1, 2, 4, … seconds, and lists the n services that are known as known answers.
//
// The names of the functions begin with __wrap_ because every program is linked with --wrap (Package.swift). So calls
// within libavahi-core reach the functions of this file. libavahi-core runs only on the reactor's thread, so the data
// here needs no locks.

// The names of this node's service type and service. The names are empty until the service is published, and if a name
// is too long. While the names are empty, this file does not change the behaviour of libavahi-core.
static char own_type[AVAHI_DOMAIN_NAME_MAX], own_service[AVAHI_DOMAIN_NAME_MAX];

void cavahi_set_own_service(const char *name, const char *type) {
  if (avahi_service_name_join(own_type, sizeof own_type, NULL, type, "local") < 0 ||
      avahi_service_name_join(own_service, sizeof own_service, name, type, "local") < 0)
    own_type[0] = own_service[0] = 0;
}

// The names can be compared as text, because libavahi writes the escapes in both of them.
static int is_browsed(const AvahiKey *key) {
  return key->type == AVAHI_DNS_TYPE_PTR && key->clazz == AVAHI_DNS_CLASS_IN && strcasecmp(key->name, own_type) == 0;
}

static int is_own(const AvahiRecord *record) { return strcasecmp(record->data.ptr.name, own_service) == 0; }

// libavahi-core records each answer that the asker already knows (RFC 6762, section 7.1), and does not send a known
// answer. The library also records known answers that only other nodes could send. The library compares each known
// answer with all known answers of the last 0.7 s. With 40 boxes or more, these comparisons use all processors. Among
// the services of our type, this node sends only its own, so only that answer is passed on.
void __real_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_response_scheduler_suppress(void *scheduler, AvahiRecord *record, const AvahiAddress *asker) {
  if (is_browsed(record->key) && !is_own(record)) return;
  __real_avahi_response_scheduler_suppress(scheduler, record, asker);
}

// libavahi-core compares two names by splitting both into labels. With n services in the cache, each record of an answer
// is compared with n records. This function compares names as text, which is faster. The names differ if their texts
// differ, because libavahi writes the escapes in both of them; only the dot at the end of a name is optional.
int __wrap_avahi_domain_equal(const char *one, const char *other);

static unsigned char lower(char letter) {
  return (unsigned char)(letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A') : letter);
}

int __wrap_avahi_domain_equal(const char *one, const char *other) {
  while (*one && lower(*one) == lower(*other)) one++, other++;
  if (*one == *other) return 1;
  return (!*one && !strcmp(other, ".")) || (!*other && !strcmp(one, "."));
}

// Duplicate question suppression (RFC 6762, section 7.3). This node does not repeat its question under two conditions.
// Another node has asked the question after this node did, and has listed no service that is unknown to this node.
//
// By itself, libavahi-core suppresses only questions without known answers that come within 0.1 s. So n boxes sent n
// questions, each with a list of n services, and some of the packets were lost.

typedef struct AvahiInterface AvahiInterface;
typedef struct AvahiCache AvahiCache;
typedef struct AvahiCacheEntry AvahiCacheEntry;
typedef void *AvahiCacheWalkCallback(AvahiCache *cache, AvahiKey *key, AvahiCacheEntry *entry, void *userdata);

// The first members of two structures of libavahi-core (cache.h of version 0.8, which NOTICE lists).
struct AvahiCache {
  AvahiServer *server;
  AvahiInterface *interface;
};
struct AvahiCacheEntry {
  AvahiCache *cache;
  AvahiRecord *record;
};

void *avahi_cache_walk(AvahiCache *cache, AvahiKey *key, AvahiCacheWalkCallback *callback, void *userdata);

// The interfaces on which this node has asked its question. An interface has one entry for IPv4 and one for IPv6. On
// interfaces beyond the limit no question is suppressed. The first question on an interface allocates its entry. The
// entry is released by avahi_querier_free_all, which libavahi-core calls before it frees an interface.
#define INTERFACES_MAX 32
static struct {
  const AvahiInterface *interface;
  int others_asked;
} asked[INTERFACES_MAX];

// The index of an interface's entry, or of a free entry if `interface` is NULL. Returns -1 if there is no entry of this
// kind.
static int find(const AvahiInterface *interface) {
  for (int index = 0; index < INTERFACES_MAX; index++)
    if (asked[index].interface == interface) return index;
  return -1;
}

static void note(const AvahiInterface *interface, int others_asked) {
  int index = find(interface);
  if (index >= 0) asked[index].others_asked = others_asked;
}

// "Passive observation of failures" (RFC 6762, section 10.5) is disabled for our service type. For this observation,
// libavahi-core counts questions that no node answers, and removes the services in question. Known answers in later
// packets of a question should cancel the count. libavahi-core cancels the count only if all these packets arrive and
// no other node asks before the last packet. So libavahi-core removed services that still existed. Causeway needs no
// such observation, because it looks up a service again when a dial to that service fails.

// libavahi-core calls this function when it receives a question. The known answers of the question follow, possibly in
// separate packets.
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

// libavahi-core calls this function for each known answer of a question. The owner of a service does not send an answer
// that the asker knows. So if the answer is unknown to this node, this node must ask.
void __real_avahi_cache_stop_poof(AvahiCache *cache, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_cache_stop_poof(AvahiCache *cache, AvahiRecord *record, const AvahiAddress *asker);
void __wrap_avahi_cache_stop_poof(AvahiCache *cache, AvahiRecord *record, const AvahiAddress *asker) {
  if (!is_browsed(record->key))
    __real_avahi_cache_stop_poof(cache, record, asker);
  else if (!is_own(record) && !avahi_cache_walk(cache, record->key, entry_of, record->data.ptr.name))
    note(cache->interface, 0);
}

// libavahi-core calls this function when a question is due. The question is sent at once if `immediately` is set, as in
// the case that cached answers expire; otherwise after 0.1 s. Only the first question on an interface has reason to
// wait, because many nodes send their first question at the same time. Later questions are sent at once, so that other
// nodes receive them before their own questions are due. Returns 0 if no question was queued.
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

// libavahi-core calls this function before it frees an interface, and when an interface has become unusable.
void __real_avahi_querier_free_all(AvahiInterface *interface);
void __wrap_avahi_querier_free_all(AvahiInterface *interface);
void __wrap_avahi_querier_free_all(AvahiInterface *interface) {
  note(interface, 0);
  int index = find(interface);
  if (index >= 0) asked[index].interface = NULL;
  __real_avahi_querier_free_all(interface);
}
