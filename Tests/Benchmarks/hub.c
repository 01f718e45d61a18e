// The lower limit of the cost of a relay: hub PORT [PEM]. The hub forwards frames by topic, with epoll in one thread.
//
// A frame consists of a length (four bytes, little-endian, of the rest of the frame), a type, a topic, and a payload. A
// frame of type 0 is sent to all subscribers of the topic. A frame of type 1 subscribes, and is returned to the client
// when that is done. Unlike a relay for real use, the hub has no back-pressure and no limits of memory.
#define _GNU_SOURCE
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "connection.h"

enum { CLIENTS_MAX = 128, TOPICS = 4, FRAME_HEADER_BYTES = 6, EVENTS_MAX = 64 };

struct client {
  struct connection connection;
  bool marked, waits_for_room, gone;
};

static int events;
static SSL_CTX *context;
static struct client *subscribers[TOPICS][CLIENTS_MAX], *marked[CLIENTS_MAX];
static int subscriber_count[TOPICS], marked_count;

// Marks a client that has bytes to send at the end of the current pass of the event loop.
static void mark(struct client *client) {
  if (!client->marked && marked_count < CLIENTS_MAX) {
    client->marked = true;
    marked[marked_count++] = client;
  }
}

static void admit(int listener) {
  int socket = accept(listener, NULL, NULL);
  if (socket < 0) return;
  struct client *client = calloc(1, sizeof *client);
  prepare(socket);
  client->connection.socket = socket;
  if (context) secure(&client->connection, context, true);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
  epoll_ctl(events, EPOLL_CTL_ADD, socket, &event);
}

// Ends a client, whose memory is freed at the end of the pass, because pending events may still point to the client.
static void part(struct client *client) {
  for (int topic = 0; topic < TOPICS; topic++)
    for (int i = subscriber_count[topic] - 1; i >= 0; i--)
      if (subscribers[topic][i] == client) subscribers[topic][i] = subscribers[topic][--subscriber_count[topic]];
  if (client->connection.tls) SSL_free(client->connection.tls);
  close(client->connection.socket);
  client->gone = true;
  mark(client);
}

static void forward(struct client *client) {
  struct buffer *in = &client->connection.in;
  uint32_t length;
  while (held(in) >= FRAME_HEADER_BYTES) {
    memcpy(&length, start(in), 4);
    if (held(in) < 4 + (size_t)length) break;
    uint8_t *frame = start(in), topic = frame[5] % TOPICS;
    if (frame[4] == 1) {
      if (subscriber_count[topic] < CLIENTS_MAX) subscribers[topic][subscriber_count[topic]++] = client;
      append(&client->connection.out, frame, 4 + length);
      mark(client);
    } else {
      for (int i = 0; i < subscriber_count[topic]; i++) {
        append(&subscribers[topic][i]->connection.out, frame, 4 + length);
        mark(subscribers[topic][i]);
      }
    }
    in->first += 4 + length;
  }
}

static void send_marked(void) {
  for (int i = 0; i < marked_count; i++) {
    struct client *client = marked[i];
    client->marked = false;
    if (client->gone) {
      free(client->connection.in.bytes);
      free(client->connection.out.bytes);
      free(client);
      continue;
    }
    flush(&client->connection);
    bool waits = held(&client->connection.out) > 0;
    if (waits == client->waits_for_room) continue;
    client->waits_for_room = waits;
    struct epoll_event event = {.events = EPOLLIN | (waits ? EPOLLOUT : 0), .data.ptr = client};
    epoll_ctl(events, EPOLL_CTL_MOD, client->connection.socket, &event);
  }
  marked_count = 0;
}

int main(int count, char **words) {
  if (count < 2) fail("usage: hub PORT [PEM]");
  if (count > 2) context = mutual_tls(true, words[2]);
  signal(SIGPIPE, SIG_IGN);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
  if (bind(listener, (void *)&here, sizeof here) || listen(listener, CLIENTS_MAX)) fail_with_errno("listen");
  events = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, ready[EVENTS_MAX];
  epoll_ctl(events, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int ready_count = epoll_wait(events, ready, EVENTS_MAX, -1);
    for (int i = 0; i < ready_count; i++) {
      struct client *client = ready[i].data.ptr;
      if (!client) {
        admit(listener);
      } else if (!client->gone) {
        if (ready[i].events & EPOLLOUT) mark(client);
        if (fill(&client->connection)) forward(client);
        else part(client);
      }
    }
    send_marked();
  }
}
