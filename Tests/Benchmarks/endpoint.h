// An end of a flow of messages through a relay. The interface is the same for all protocols of relays.
//
// A single publisher sends each message to all receivers. A receiver sends acknowledgements or echoes to the publisher.
#pragma once
#include "connection.h"

enum { RECEIVERS_MAX = 8, ID_BYTES = 16 };
enum role { PUBLISHER, RECEIVER, IDLE };

struct settings {
  const char *host, *from;     // the relay's address; the local address, or null for any
  int port;
  const char *pem;             // the file for mutual TLS, or null for a plain connection
  bool inside;                 // Causeway: whether sealed frames are sent inside TLS, as by a phone
  bool interactive;            // Causeway: the interactive class, for round trips; otherwise the bulk class
  const char *key;             // Causeway: the file of the node's key, made if it does not exist
  int number;                  // the number of this receiver or idle end
  int receivers;
  uint8_t to[RECEIVERS_MAX][ID_BYTES];  // Causeway: the ids of the receivers' nodes
};

struct protocol;
struct link;

struct endpoint {
  const struct protocol *protocol;
  enum role role;
  struct settings settings;
  int connections;             // one for each receiver with the raw protocol; otherwise 1
  struct connection connection[RECEIVERS_MAX];
  int turn;                    // the connection from which `next` reads messages
  struct link *link;           // used by Causeway only
  int listener;                // the listening socket of a receiver with the raw protocol
  bool subscribed;
};

struct protocol {
  const char *name;
  // Connects. Returns when messages to this end will arrive.
  void (*open)(struct endpoint *endpoint);
  // The function is called when the other ends know that this end is open. The function waits until the other ends are
  // open, too. The pointer is null if no wait is needed.
  void (*meet)(struct endpoint *endpoint);
  void (*send)(struct endpoint *endpoint, const uint8_t *bytes, size_t size);
  // Sets the next complete received message, which is valid until the next fill. Returns false if there is no message.
  bool (*next)(struct endpoint *endpoint, const uint8_t **bytes, size_t *size);
  // Encrypts the bytes that `send` has collected. Null if `send` collects none.
  void (*complete)(struct endpoint *endpoint);
};

// The protocols that `endpoint_open` accepts: raw, hub, nats, mqtt, causeway.
extern const struct protocol raw_protocol, hub_protocol, nats_protocol, mqtt_protocol, causeway_protocol;

// Opens an end. Ends the program if the relay cannot be reached or does not accept this end.
void endpoint_open(struct endpoint *endpoint, const char *protocol, enum role role, const struct settings *settings);
bool endpoint_flush(struct endpoint *endpoint);
bool endpoint_fill(struct endpoint *endpoint);
// The number of bytes that wait for a socket, of the connection with the most.
size_t endpoint_held(const struct endpoint *endpoint);
// Waits until bytes can be received, or until pending bytes can be sent. Returns false after a timeout.
bool endpoint_await(const struct endpoint *endpoint, int milliseconds);
// The name of the cipher of the connection.
const char *endpoint_cipher(const struct endpoint *endpoint);
// With Causeway the id of this node in hexadecimal digits, otherwise "-".
const char *endpoint_id(const struct endpoint *endpoint);
