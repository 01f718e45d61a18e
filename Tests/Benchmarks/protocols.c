// The protocols of the relays other than Causeway: raw messages through a proxy, the frames of the hub, NATS, and MQTT
// 3.1.1 with QoS 0. The proxy connects to the receivers.
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint.h"

enum { DATA, BACK, NOTHING };  // the topics: to the receivers, to the publisher, of idle ends
static const char *topics[] = {"bd", "ba", "bx"};
static const double SETUP_SECONDS = 10;

static int own_topic(const struct endpoint *endpoint) { return endpoint->role == RECEIVER ? DATA : endpoint->role == PUBLISHER ? BACK : NOTHING; }
static int their_topic(const struct endpoint *endpoint) { return endpoint->role == PUBLISHER ? DATA : BACK; }

static SSL_CTX *context_of(const struct endpoint *endpoint, bool server) {
  static SSL_CTX *contexts[2];
  if (!contexts[server]) contexts[server] = mutual_tls(server, endpoint->settings.pem);
  return contexts[server];
}

static struct connection dial_relay(const struct endpoint *endpoint, int port) {
  return dial(endpoint->settings.host, port, endpoint->settings.from);
}

static void protect(struct endpoint *endpoint, struct connection *connection, bool server) {
  if (endpoint->settings.pem) secure(connection, context_of(endpoint, server), server);
}

// Waits until the receive buffer holds at least `size` bytes. Removes no bytes.
static void await_bytes(struct connection *connection, size_t size) {
  for (double begin = now(); held(&connection->in) < size;) {
    if (!flush(connection)) fail("the relay has ended the connection");
    await_socket(connection, 100);
    if (!fill(connection)) fail("the relay has ended the connection");
    if (now() - begin > SETUP_SECONDS) fail("the relay does not answer");
  }
}

// Sends a subscription, and waits until the relay has confirmed it.
static void subscribe(struct endpoint *endpoint, const void *bytes, size_t size) {
  const uint8_t *message;
  size_t length;
  append(&endpoint->connection[0].out, bytes, size);
  for (size_t known = 0; !endpoint->subscribed; known = held(&endpoint->connection[0].in)) {
    await_bytes(&endpoint->connection[0], known + 1);
    while (endpoint->protocol->next(endpoint, &message, &length)) {}
  }
}

// Raw: each message follows its length. The relay is a proxy that connects to the receivers.

static void raw_open(struct endpoint *endpoint) {
  const struct settings *settings = &endpoint->settings;
  if (endpoint->role == RECEIVER) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(settings->port + settings->number))};
    int on = 1;
    endpoint->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(endpoint->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(endpoint->listener, (void *)&here, sizeof here) || listen(endpoint->listener, 8)) fail_with_errno("listen");
    return;
  }
  endpoint->connections = endpoint->role == PUBLISHER ? settings->receivers : 1;
  for (int i = 0; i < endpoint->connections; i++) {
    endpoint->connection[i] = dial_relay(endpoint, settings->port + i);
    protect(endpoint, &endpoint->connection[i], false);
  }
}

static void raw_meet(struct endpoint *endpoint) {
  if (endpoint->role != RECEIVER) return;
  endpoint->connection[0] = (struct connection){.socket = accept(endpoint->listener, NULL, NULL)};
  if (endpoint->connection[0].socket < 0) fail_with_errno("accept");
  close(endpoint->listener);
  prepare(endpoint->connection[0].socket);
  protect(endpoint, &endpoint->connection[0], true);
}

static void raw_send(struct endpoint *endpoint, const uint8_t *bytes, size_t size) {
  uint32_t length = (uint32_t)size;
  for (int i = 0; i < endpoint->connections; i++) {
    append(&endpoint->connection[i].out, &length, sizeof length);
    append(&endpoint->connection[i].out, bytes, size);
  }
}

static bool raw_next(struct endpoint *endpoint, const uint8_t **bytes, size_t *size) {
  for (; endpoint->turn < endpoint->connections; endpoint->turn++) {
    struct buffer *in = &endpoint->connection[endpoint->turn].in;
    uint32_t length;
    if (held(in) < sizeof length) continue;
    memcpy(&length, start(in), sizeof length);
    if (held(in) < sizeof length + length) continue;
    *bytes = start(in) + sizeof length, *size = length;
    in->first += sizeof length + length;
    return true;
  }
  endpoint->turn = 0;
  return false;
}

// The frames of the hub, which hub.c describes.

static void hub_frame(struct endpoint *endpoint, int type, int topic, const uint8_t *bytes, size_t size) {
  uint8_t header[6] = {0, 0, 0, 0, (uint8_t)type, (uint8_t)topic};
  uint32_t length = (uint32_t)size + 2;
  memcpy(header, &length, sizeof length);
  append(&endpoint->connection[0].out, header, sizeof header);
  append(&endpoint->connection[0].out, bytes, size);
}

static void hub_open(struct endpoint *endpoint) {
  endpoint->connection[0] = dial_relay(endpoint, endpoint->settings.port);
  protect(endpoint, &endpoint->connection[0], false);
  hub_frame(endpoint, 1, own_topic(endpoint), (const uint8_t *)"", 0);
  subscribe(endpoint, "", 0);
}

static void hub_send(struct endpoint *endpoint, const uint8_t *bytes, size_t size) {
  hub_frame(endpoint, 0, their_topic(endpoint), bytes, size);
}

static bool hub_next(struct endpoint *endpoint, const uint8_t **bytes, size_t *size) {
  struct buffer *in = &endpoint->connection[0].in;
  uint32_t length;
  while (held(in) >= 6) {
    const uint8_t *frame = start(in);
    memcpy(&length, frame, sizeof length);
    if (held(in) < 4 + (size_t)length) break;
    in->first += 4 + length;
    if (frame[4] == 0) {
      *bytes = frame + 6, *size = length - 2;
      return true;
    }
    endpoint->subscribed = true;
  }
  return false;
}

// The client protocol of NATS.

static void nats_open(struct endpoint *endpoint) {
  struct connection *connection = &endpoint->connection[0];
  char text[256];
  *connection = dial_relay(endpoint, endpoint->settings.port);
  // The server sends INFO in clear. TLS begins after the line feed that ends INFO.
  for (size_t known = 0; !known || start(&connection->in)[known - 1] != '\n'; known = held(&connection->in)) await_bytes(connection, known + 1);
  connection->in.first = connection->in.end;
  protect(endpoint, connection, false);
  int size = snprintf(text, sizeof text,
                      "CONNECT {\"verbose\":false,\"pedantic\":false,\"tls_required\":%s,\"lang\":\"c\",\"version\":\"1\",\"protocol\":1}\r\n"
                      "SUB %s 1\r\nPING\r\n",
                      endpoint->settings.pem ? "true" : "false", topics[own_topic(endpoint)]);
  subscribe(endpoint, text, (size_t)size);
}

static void nats_send(struct endpoint *endpoint, const uint8_t *bytes, size_t size) {
  char head[32];
  struct buffer *out = &endpoint->connection[0].out;
  append(out, head, (size_t)snprintf(head, sizeof head, "PUB %s %zu\r\n", topics[their_topic(endpoint)], size));
  append(out, bytes, size);
  append(out, "\r\n", 2);
}

static bool nats_next(struct endpoint *endpoint, const uint8_t **bytes, size_t *size) {
  struct buffer *in = &endpoint->connection[0].in;
  for (;;) {
    const char *line = (const char *)start(in), *end = held(in) ? memchr(line, '\n', held(in)) : NULL;
    if (!end) return false;
    size_t head = (size_t)(end + 1 - line), length;
    switch (line[0]) {
      case 'M': {  // MSG, topic, subscription, size
        const char *space = end;
        while (*space != ' ') space--;
        length = strtoul(space + 1, NULL, 10);
        if (held(in) < head + length + 2) return false;
        *bytes = (const uint8_t *)end + 1, *size = length;
        in->first += head + length + 2;
        return true;
      }
      case '-': fail("the NATS server reports an error");
      case 'P':
        if (line[1] == 'O') endpoint->subscribed = true;
        else append(&endpoint->connection[0].out, "PONG\r\n", 6);
    }
    in->first += head;
  }
}

// MQTT 3.1.1.

enum { CONNACK_BYTES = 4, PUBLISH = 3, SUBACK = 9 };

static void mqtt_open(struct endpoint *endpoint) {
  struct connection *connection = &endpoint->connection[0];
  char name[16];
  *connection = dial_relay(endpoint, endpoint->settings.port);
  protect(endpoint, connection, false);
  int length = snprintf(name, sizeof name, "%d-%d", endpoint->role, endpoint->settings.number);
  uint8_t connect[14] = {0x10, (uint8_t)(12 + length), 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 1, 44, 0, (uint8_t)length};
  append(&connection->out, connect, sizeof connect);
  append(&connection->out, name, (size_t)length);
  await_bytes(connection, CONNACK_BYTES);
  if (start(&connection->in)[3]) fail("the MQTT server refuses the connection");
  connection->in.first += CONNACK_BYTES;
  const char *topic = topics[own_topic(endpoint)];
  uint8_t request[9] = {0x82, 7, 0, 1, 0, 2, (uint8_t)topic[0], (uint8_t)topic[1], 0};
  subscribe(endpoint, request, sizeof request);
}

static void mqtt_send(struct endpoint *endpoint, const uint8_t *bytes, size_t size) {
  uint8_t head[16] = {PUBLISH << 4};
  size_t count = 1, rest = 4 + size;
  do {
    head[count++] = (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
    rest >>= 7;
  } while (rest);
  const char *topic = topics[their_topic(endpoint)];
  uint8_t tail[4] = {0, 2, (uint8_t)topic[0], (uint8_t)topic[1]};
  memcpy(head + count, tail, sizeof tail);
  append(&endpoint->connection[0].out, head, count + sizeof tail);
  append(&endpoint->connection[0].out, bytes, size);
}

static bool mqtt_next(struct endpoint *endpoint, const uint8_t **bytes, size_t *size) {
  struct buffer *in = &endpoint->connection[0].in;
  for (;;) {
    const uint8_t *packet = start(in);
    size_t head = 1, rest = 0, available = held(in);
    for (int shift = 0;; shift += 7) {
      if (head >= available) return false;
      rest |= (size_t)(packet[head] & 127) << shift;
      if (!(packet[head++] & 128)) break;
    }
    if (available < head + rest) return false;
    in->first += head + rest;
    if (packet[0] >> 4 == SUBACK) endpoint->subscribed = true;
    if (packet[0] >> 4 != PUBLISH) continue;
    size_t topic = 2 + ((size_t)packet[head] << 8 | packet[head + 1]);
    *bytes = packet + head + topic, *size = rest - topic;
    return true;
  }
}

const struct protocol raw_protocol = {"raw", raw_open, raw_meet, raw_send, raw_next, NULL};
const struct protocol hub_protocol = {"hub", hub_open, NULL, hub_send, hub_next, NULL};
const struct protocol nats_protocol = {"nats", nats_open, NULL, nats_send, nats_next, NULL};
const struct protocol mqtt_protocol = {"mqtt", mqtt_open, NULL, mqtt_send, mqtt_next, NULL};
