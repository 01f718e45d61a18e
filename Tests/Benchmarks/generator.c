// Sends and receives messages through a relay: generator publish|receive|ping|echo|idle|hold --OPTION VALUE …
//
// - publish sends numbered messages to all receivers for --seconds. At most --window messages are not yet acknowledged
//   by the slowest receiver.
// - receive checks that each message arrives once, in order and complete. A missing message ends the program with
//   status 2.
// - ping sends --rate messages per second to an echo and measures the round trips.
// - idle keeps --count ends open, and hold accepts all connections. The modes idle and hold run until standard input
//   ends.
//
// An end that waits for others prints “ready” and its id. The results are one line of JSON.
#define _GNU_SOURCE
#include <openssl/rand.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

enum { MESSAGE_BYTES_MIN = 17, IDLE_MAX = 64, COLLECTED_BYTES = 65536, ROUND_TRIPS_MAX = 100000 };
static const double STALL_SECONDS = 3, LINGER_SECONDS = 0.2;

static const char *protocol = "hub";
static struct settings settings = {.host = "127.0.0.1", .receivers = 1};
static size_t message_size = 64;
static uint64_t window = 1024;
static double seconds = 1;
static int rate = 500, count = 8;
static bool one_by_one;

static void store(uint8_t *bytes, uint64_t value) { memcpy(bytes, &value, sizeof value); }
static uint64_t load(const uint8_t *bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static void say_ready(const char *id) {
  printf("ready %s\n", id);
  fflush(stdout);
}

// Sends pending bytes, and serves the connection for LINGER_SECONDS.
static void linger(struct endpoint *endpoint) {
  const uint8_t *bytes;
  size_t size;
  for (double begin = now(); now() - begin < LINGER_SECONDS;) {
    if (!endpoint_flush(endpoint)) return;
    endpoint_await(endpoint, 20);
    if (!endpoint_fill(endpoint)) return;
    while (endpoint->protocol->next(endpoint, &bytes, &size)) {}
  }
}

// A message begins with its number, and byte 8 of the last message is 1. An acknowledgement is the number of messages
// that the receiver has received, followed by the receiver's own number.

static void publish(void) {
  struct endpoint endpoint;
  endpoint_open(&endpoint, protocol, PUBLISHER, &settings);
  uint8_t *message = malloc(message_size);
  RAND_bytes(message, (int)message_size);
  uint64_t sent = 0, received[RECEIVERS_MAX] = {0}, slowest = 0;
  bool done = false;
  double begin = now(), processor = processor_seconds(), progress = begin;
  while (!done || slowest < sent) {
    while (!done && sent - slowest < window && endpoint_held(&endpoint) < COLLECTED_BYTES) {
      done = (sent & 15) == 0 && now() - begin > seconds;
      store(message, sent++);
      message[8] = done;
      endpoint.protocol->send(&endpoint, message, message_size);
      if (one_by_one && !endpoint_flush(&endpoint)) fail("the relay has ended the connection");
    }
    if (!endpoint_flush(&endpoint)) fail("the relay has ended the connection");
    bool waits = done || sent - slowest >= window || endpoint_held(&endpoint);
    endpoint_await(&endpoint, waits ? 500 : 0);
    if (!endpoint_fill(&endpoint)) fail("the relay has ended the connection");
    const uint8_t *bytes;
    size_t size;
    while (endpoint.protocol->next(&endpoint, &bytes, &size))
      if (size == MESSAGE_BYTES_MIN && bytes[8] < RECEIVERS_MAX) received[bytes[8]] = load(bytes);
    uint64_t before = slowest;
    slowest = received[0];
    for (int i = 1; i < settings.receivers; i++)
      if (received[i] < slowest) slowest = received[i];
    if (slowest != before) progress = now();
    if (waits && now() - progress > STALL_SECONDS) {
      fprintf(stderr, "sent %lu, acknowledged %lu: ", sent, slowest);
      fail("nothing was acknowledged for 3 s");
    }
  }
  double took = now() - begin;
  printf("{\"messages\": %lu, \"seconds\": %.6f, \"processor\": %.6f, \"cipher\": \"%s\"}\n", sent * (uint64_t)settings.receivers, took,
         processor_seconds() - processor, endpoint_cipher(&endpoint));
  linger(&endpoint);
}

static void receive(void) {
  struct endpoint endpoint;
  endpoint_open(&endpoint, protocol, RECEIVER, &settings);
  say_ready(endpoint_id(&endpoint));
  if (endpoint.protocol->meet) endpoint.protocol->meet(&endpoint);
  uint64_t expected = 0, acknowledged = 0, every = window / 4 ? window / 4 : 1;
  double processor = processor_seconds();
  for (bool last = false; !last;) {
    const uint8_t *bytes;
    size_t size;
    endpoint_await(&endpoint, 1000);
    if (!endpoint_fill(&endpoint)) fail("the relay has ended the connection");
    while (!last && endpoint.protocol->next(&endpoint, &bytes, &size)) {
      if (size != message_size || load(bytes) != expected) {
        fprintf(stderr, "message %lu is missing: after it came %lu, with %zu bytes\n", expected, load(bytes), size);
        fail("the relay lost or changed a message");
      }
      last = bytes[8] == 1;
      if (++expected - acknowledged < every && !last) continue;
      uint8_t acknowledgement[MESSAGE_BYTES_MIN] = {0};
      store(acknowledgement, expected);
      acknowledgement[8] = (uint8_t)settings.number;
      endpoint.protocol->send(&endpoint, acknowledgement, sizeof acknowledgement);
      acknowledged = expected;
    }
    endpoint_flush(&endpoint);
  }
  printf("{\"messages\": %lu, \"processor\": %.6f}\n", expected, processor_seconds() - processor);
  linger(&endpoint);
}

static void echo(void) {
  struct endpoint endpoint;
  endpoint_open(&endpoint, protocol, RECEIVER, &settings);
  say_ready(endpoint_id(&endpoint));
  if (endpoint.protocol->meet) endpoint.protocol->meet(&endpoint);
  for (;;) {
    const uint8_t *bytes;
    size_t size;
    endpoint_await(&endpoint, 1000);
    if (!endpoint_fill(&endpoint)) return;
    while (endpoint.protocol->next(&endpoint, &bytes, &size)) endpoint.protocol->send(&endpoint, bytes, size);
    endpoint_flush(&endpoint);
  }
}

static int ascending(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static void ping(void) {
  struct endpoint endpoint;
  static double times[ROUND_TRIPS_MAX];
  endpoint_open(&endpoint, protocol, PUBLISHER, &settings);
  uint8_t *message = calloc(1, message_size);
  // The round trips of the first quarter of a second are not counted, because the system is not yet in a steady state.
  int total = (int)(rate * seconds), first = rate / 4;
  if (total > ROUND_TRIPS_MAX || total <= first) fail("--rate and --seconds");
  double begin = now();
  for (int i = 0; i < total; i++) {
    double pause = begin + (double)i / rate - now();
    if (pause > 0) nanosleep(&(struct timespec){(time_t)pause, (long)((pause - (double)(time_t)pause) * 1e9)}, NULL);
    store(message, (uint64_t)i);
    double asked = now();
    endpoint.protocol->send(&endpoint, message, message_size);
    endpoint_flush(&endpoint);
    for (bool answered = false; !answered;) {
      const uint8_t *bytes;
      size_t size;
      endpoint_await(&endpoint, 1000);
      if (!endpoint_fill(&endpoint)) fail("the relay has ended the connection");
      while (endpoint.protocol->next(&endpoint, &bytes, &size)) answered = answered || load(bytes) == (uint64_t)i;
      endpoint_flush(&endpoint);
      if (now() - asked > STALL_SECONDS) fail("an echo did not come back");
    }
    times[i] = now() - asked;
  }
  qsort(times + first, (size_t)(total - first), sizeof *times, ascending);
  printf("{\"count\": %d, \"p50\": %.9f, \"p99\": %.9f}\n", total - first, times[first + (total - first) / 2],
         times[first + (total - first) * 99 / 100]);
  linger(&endpoint);
}

static void idle(void) {
  static struct endpoint endpoints[IDLE_MAX];
  static struct pollfd what[IDLE_MAX + 1];
  char key[256], from[32];
  const char *keys = settings.key, *network = settings.from;
  if (count > IDLE_MAX) fail("--count: 64 at most");
  what[0] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
  int open = 0;
  for (bool said = false;;) {
    if (open < count) {
      settings.number = open;
      // Each end has a separate key and address, because a relay may limit the number of keys at one address.
      if (keys) snprintf(key, sizeof key, "%s-%d", keys, open), settings.key = key;
      if (network) snprintf(from, sizeof from, "%s.%d", network, open + 1), settings.from = from;
      endpoint_open(&endpoints[open], protocol, IDLE, &settings);
      what[open + 1] = (struct pollfd){endpoints[open].connection[0].socket, POLLIN, 0};
      open++;
    } else if (!said) {
      say_ready("-");
      said = true;
    }
    poll(what, (nfds_t)open + 1, open < count ? 0 : 1000);
    if (what[0].revents) return;
    for (int i = 0; i < open; i++) {
      const uint8_t *bytes;
      size_t size;
      if (!what[i + 1].revents) continue;
      if (!endpoint_fill(&endpoints[i])) fail("the relay has ended an idle connection");
      while (endpoints[i].protocol->next(&endpoints[i], &bytes, &size)) {}
      endpoint_flush(&endpoints[i]);
    }
  }
}

// Accepts the connections that a proxy opens for idle ends, and holds them.
static void hold(void) {
  static struct endpoint endpoint;
  static struct connection connections[IDLE_MAX];
  static struct pollfd what[IDLE_MAX + 2];
  endpoint_open(&endpoint, "raw", RECEIVER, &settings);
  SSL_CTX *context = settings.pem ? mutual_tls(true, settings.pem) : NULL;
  what[0] = (struct pollfd){STDIN_FILENO, POLLIN, 0}, what[1] = (struct pollfd){endpoint.listener, POLLIN, 0};
  say_ready("-");
  for (int open = 0; !what[0].revents; poll(what, (nfds_t)open + 2, 1000)) {
    if (what[1].revents && open < IDLE_MAX) {
      connections[open].socket = accept(endpoint.listener, NULL, NULL);
      prepare(connections[open].socket);
      if (context) secure(&connections[open], context, true);
      what[open + 2] = (struct pollfd){connections[open].socket, POLLIN, 0};
      open++;
    }
    for (int i = 0; i < open; i++)
      if (what[i + 2].revents && !fill(&connections[i])) what[i + 2].fd = -1;
  }
}

static void take_option(const char *name, const char *value) {
  if (!strcmp(name, "--protocol")) protocol = value;
  else if (!strcmp(name, "--host")) settings.host = value;
  else if (!strcmp(name, "--port")) settings.port = atoi(value);
  else if (!strcmp(name, "--from")) settings.from = value;
  else if (!strcmp(name, "--tls")) settings.pem = value;
  else if (!strcmp(name, "--key")) settings.key = value;
  else if (!strcmp(name, "--inside")) settings.inside = atoi(value);
  else if (!strcmp(name, "--number")) settings.number = atoi(value);
  else if (!strcmp(name, "--size")) message_size = strtoul(value, NULL, 10);
  else if (!strcmp(name, "--window")) window = strtoul(value, NULL, 10);
  else if (!strcmp(name, "--seconds")) seconds = atof(value);
  else if (!strcmp(name, "--rate")) rate = atoi(value);
  else if (!strcmp(name, "--count")) count = atoi(value);
  else if (!strcmp(name, "--one-by-one")) one_by_one = atoi(value);
  else if (!strcmp(name, "--receivers")) settings.receivers = atoi(value);
  else if (!strcmp(name, "--to")) {
    // The value has ids separated by commas. With relays that use no ids, each id is a dash.
    for (int i = 0; i < RECEIVERS_MAX && *value; i++) {
      sodium_hex2bin(settings.to[i], ID_BYTES, value, strcspn(value, ","), NULL, NULL, NULL);
      value += strcspn(value, ",");
      value += *value == ',';
    }
  } else {
    fprintf(stderr, "%s: ", name);
    fail("no such option");
  }
}

int main(int words, char **word) {
  if (words < 2 || words % 2) fail("usage: generator publish|receive|ping|echo|idle|hold --OPTION VALUE …");
  for (int i = 2; i < words; i += 2) take_option(word[i], word[i + 1]);
  if (settings.receivers < 1 || settings.receivers > RECEIVERS_MAX || message_size < MESSAGE_BYTES_MIN) fail("--receivers or --size");
  if (sodium_init() < 0) fail("libsodium");
  signal(SIGPIPE, SIG_IGN);
  static const struct { const char *name; void (*run)(void); } roles[] = {
      {"publish", publish}, {"receive", receive}, {"ping", ping}, {"echo", echo}, {"idle", idle}, {"hold", hold}};
  settings.interactive = !strcmp(word[1], "ping") || !strcmp(word[1], "echo");
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (!strcmp(word[1], roles[i].name)) return roles[i].run(), 0;
  fail("no such role: publish, receive, ping, echo, idle or hold");
}
