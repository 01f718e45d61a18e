// One end of a flow of messages through a relay, independent of the relay's protocol.
//
// One publisher sends each message to all receivers. A receiver sends acknowledgements or echoes to the publisher.
#pragma once
#include "connection.h"

enum { RECEIVERS_MAX = 8, ID_BYTES = 16 };
enum role { PUBLISHER, RECEIVER, IDLE };

struct settings {
  const char *host, *from;     // the relay's address; the own one, or null
  int port;
  const char *pem;             // mutual TLS with this file, or null
  bool inside;                 // Causeway: sealed frames inside TLS, as a phone sends them
  bool interactive;            // Causeway: the interactive class, for round trips; otherwise bulk
  const char *key;             // Causeway: the node's key, made if the file does not exist
  int number;                  // of this receiver or idle end
  int receivers;
  uint8_t to[RECEIVERS_MAX][ID_BYTES];  // Causeway: the receivers' nodes
};

struct protocol;
struct link;

struct endpoint {
  const struct protocol *protocol;
  enum role role;
  struct settings settings;
  int connections;             // raw streams: one for each receiver; otherwise 1
  struct connection connection[RECEIVERS_MAX];
  int turn;                    // the connection from which `next` cuts messages
  struct link *link;           // Causeway
  int listener;                // a raw receiver's
  bool subscribed;
};

struct protocol {
  const char *name;
  // Connects, and returns when messages to this end will arrive.
  void (*open)(struct endpoint *endpoint);
  // Called when the other ends know that this end is open: waits for them. Null: no wait is needed.
  void (*meet)(struct endpoint *endpoint);
  void (*send)(struct endpoint *endpoint, const uint8_t *bytes, size_t size);
  // The next whole received message, valid until the next fill. False: there is none.
  bool (*next)(struct endpoint *endpoint, const uint8_t **bytes, size_t *size);
  // Encrypts the collected bytes. Null: none are ever collected.
  void (*complete)(struct endpoint *endpoint);
};

// The protocols of endpoint_open: raw, hub, nats, mqtt, causeway.
extern const struct protocol raw_protocol, hub_protocol, nats_protocol, mqtt_protocol, causeway_protocol;

// Fails if the relay cannot be reached or does not accept this end.
void endpoint_open(struct endpoint *endpoint, const char *protocol, enum role role, const struct settings *settings);
bool endpoint_flush(struct endpoint *endpoint);
bool endpoint_fill(struct endpoint *endpoint);
// Bytes that wait for the sockets.
size_t endpoint_held(const struct endpoint *endpoint);
// Waits until bytes can be received, or pending bytes can be sent. False: timeout.
bool endpoint_await(const struct endpoint *endpoint, int milliseconds);
// The cipher of the connection.
const char *endpoint_cipher(const struct endpoint *endpoint);
// Causeway: the own id in hexadecimal digits; otherwise "-".
const char *endpoint_id(const struct endpoint *endpoint);
