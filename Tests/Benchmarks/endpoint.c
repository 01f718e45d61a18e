#define _GNU_SOURCE
#include "endpoint.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

void endpoint_open(struct endpoint *endpoint, const char *protocol, enum role role, const struct settings *settings) {
  static const struct protocol *all[] = {&raw_protocol, &hub_protocol, &nats_protocol, &mqtt_protocol, &causeway_protocol};
  *endpoint = (struct endpoint){.role = role, .settings = *settings, .connections = 1, .listener = -1};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(all[i]->name, protocol)) endpoint->protocol = all[i];
  if (!endpoint->protocol) fail("no such protocol: raw, hub, nats, mqtt or causeway");
  endpoint->protocol->open(endpoint);
}

bool endpoint_flush(struct endpoint *endpoint) {
  if (endpoint->protocol->complete) endpoint->protocol->complete(endpoint);
  bool open = true;
  for (int i = 0; i < endpoint->connections; i++) open = flush(&endpoint->connection[i]) && open;
  return open;
}

bool endpoint_fill(struct endpoint *endpoint) {
  bool open = true;
  for (int i = 0; i < endpoint->connections; i++) open = fill(&endpoint->connection[i]) && open;
  return open;
}

size_t endpoint_held(const struct endpoint *endpoint) {
  size_t most = 0;
  for (int i = 0; i < endpoint->connections; i++)
    if (held(&endpoint->connection[i].out) > most) most = held(&endpoint->connection[i].out);
  return most;
}

bool endpoint_await(const struct endpoint *endpoint, int milliseconds) {
  struct pollfd what[RECEIVERS_MAX];
  for (int i = 0; i < endpoint->connections; i++) {
    const struct connection *connection = &endpoint->connection[i];
    what[i] = (struct pollfd){connection->socket, (short)(POLLIN | (held(&connection->out) ? POLLOUT : 0)), 0};
  }
  return poll(what, (nfds_t)endpoint->connections, milliseconds) != 0;
}
