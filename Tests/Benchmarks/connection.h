// A non-blocking TCP connection, plain or inside mutual TLS 1.3, and its two buffers. Used by the generator and the hub.
#pragma once
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Pending bytes: those between first and end. The memory grows as needed and is never released.
struct buffer {
  uint8_t *bytes;
  size_t first, end, capacity;
};

struct connection {
  int socket;
  SSL *tls;  // null: plain
  struct buffer in, out;
  bool ended;
};

// Prints the error and ends the program with status 2. The second function also prints the kernel's error.
_Noreturn void fail(const char *what);
_Noreturn void fail_with_errno(const char *what);

// Seconds of a monotonic clock, and the processor seconds of this process.
double now(void);
double processor_seconds(void);

static inline size_t held(const struct buffer *buffer) { return buffer->end - buffer->first; }
static inline uint8_t *start(const struct buffer *buffer) { return buffer->bytes + buffer->first; }
// Makes room for `size` bytes at the end. The caller adds the written bytes to `end`.
uint8_t *room(struct buffer *buffer, size_t size);
void append(struct buffer *buffer, const void *bytes, size_t size);

// A context whose only certificate, key and authority are in one PEM file. The other side must present the same authority.
SSL_CTX *mutual_tls(bool server, const char *pem);

// Starts TLS over the connection's socket.
void secure(struct connection *connection, SSL_CTX *context, bool server);

// Makes a socket non-blocking, without Nagle's algorithm.
void prepare(int socket);

// Connects, from address `from` unless it is null. Fails after 5 s of refusals.
struct connection dial(const char *host, int port, const char *from);

// Sends pending bytes as far as the socket accepts them. False: the connection ended.
bool flush(struct connection *connection);

// Receives pending bytes, at most 256 KiB for plain connections. False: the connection ended.
bool fill(struct connection *connection);

// Waits until bytes can be received, or pending bytes can be sent.
void await_socket(const struct connection *connection, int milliseconds);
