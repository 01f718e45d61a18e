// A TCP connection that does not block, plain or inside mutual TLS 1.3, and its two buffers. Used by the generator and the hub.
#pragma once
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes that wait: those between first and end. The memory grows as needed and stays.
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

// Say what is wrong and end the program with status 2; also what the kernel said.
_Noreturn void fail(const char *what);
_Noreturn void fail_with_errno(const char *what);

// Seconds of a clock that only goes forward; of the processor that this process has used.
double now(void);
double processor_seconds(void);

static inline size_t held(const struct buffer *buffer) { return buffer->end - buffer->first; }
static inline uint8_t *start(const struct buffer *buffer) { return buffer->bytes + buffer->first; }
// Room for `size` bytes at the end; the caller adds to `end` what it has written.
uint8_t *room(struct buffer *buffer, size_t size);
void append(struct buffer *buffer, const void *bytes, size_t size);

// A context whose only certificate, key and authority are in one PEM file. The other side must prove the same authority.
SSL_CTX *mutual_tls(bool server, const char *pem);

// TLS over the connection's socket.
void secure(struct connection *connection, SSL_CTX *context, bool server);

// No blocking, no Nagle.
void prepare(int socket);

// Connect, from address `from` unless it is null; fails after 5 s of refusals.
struct connection dial(const char *host, int port, const char *from);

// Send what waits, as far as the socket takes it. False: the connection ended.
bool flush(struct connection *connection);

// Receive what has come, for plain connections at most 256 KiB. False: the connection ended.
bool fill(struct connection *connection);

// Wait until there is something to receive, or room for what waits.
void await_socket(const struct connection *connection, int milliseconds);
