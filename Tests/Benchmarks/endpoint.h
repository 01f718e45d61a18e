// One end of a flow of messages through a relay, whatever the relay speaks.
//
// One publisher sends each message to all receivers; a receiver sends acknowledgements or echoes to the publisher.
#pragma once
#include "connection.h"

enum { RECEIVERS_MAX = 8, ID_BYTES = 16 };
enum role { PUBLISHER, RECEIVER, IDLE };

struct settings {
  const char *host, *from;     // the relay's address; the own one, or null
  int port;
  const char *pem;             // mutual TLS by this file, or null
  bool inside;                 // Causeway: sealed frames inside TLS, as a phone's
  bool interactive;            // Causeway: the class of round trips, otherwise bulk
  const char *key;             // Causeway: the node's key, made when the file is not there
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
  int turn;                    // the connection whose messages `next` cuts
  struct link *link;           // Causeway
  int listener;                // a raw receiver's
  bool subscribed;
};

struct protocol {
  const char *name;
  // Connect, and come back when what is sent to this end will arrive.
  void (*open)(struct endpoint *endpoint);
  // Called when others have been told that this end is open: wait for them. Null: nothing is to be done.
  void (*meet)(struct endpoint *endpoint);
  void (*send)(struct endpoint *endpoint, const uint8_t *bytes, size_t size);
  // The next whole message of what has come; valid until more is filled in. False: there is none.
  bool (*next)(struct endpoint *endpoint, const uint8_t **bytes, size_t *size);
  // Encrypt what is still collected; null if nothing ever is.
  void (*complete)(struct endpoint *endpoint);
};

// Those that endpoint_open knows: raw, hub, nats, mqtt, causeway.
extern const struct protocol raw_protocol, hub_protocol, nats_protocol, mqtt_protocol, causeway_protocol;

// Fails when the relay cannot be reached or does not accept this end.
void endpoint_open(struct endpoint *endpoint, const char *protocol, enum role role, const struct settings *settings);
bool endpoint_flush(struct endpoint *endpoint);
bool endpoint_fill(struct endpoint *endpoint);
// Bytes that wait for the sockets.
size_t endpoint_held(const struct endpoint *endpoint);
// Wait for something to receive, or room for what waits. False: the time is over.
bool endpoint_await(const struct endpoint *endpoint, int milliseconds);
// What the connection is protected by.
const char *endpoint_cipher(const struct endpoint *endpoint);
// Causeway: the own id in hexadecimal digits; otherwise "-".
const char *endpoint_id(const struct endpoint *endpoint);
