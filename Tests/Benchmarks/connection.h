// A non-blocking TCP connection, plain or with mutual TLS 1.3, and its two buffers. The generator and the hub use these
// connections.
#pragma once
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A buffer of pending bytes, which are those between `first` and `end`. The memory of the buffer grows as needed and is
// never released.
struct buffer {
  uint8_t *bytes;
  size_t first, end, capacity;
};

struct connection {
  int socket;
  SSL *tls;  // null for a plain connection
  struct buffer in, out;
  bool ended;
};

// Print the error and end the program with status 2. `fail_with_errno` also prints the kernel's error.
_Noreturn void fail(const char *what);
_Noreturn void fail_with_errno(const char *what);

// The seconds of a monotonic clock, and the processor seconds of this process.
double now(void);
double processor_seconds(void);

static inline size_t held(const struct buffer *buffer) { return buffer->end - buffer->first; }
static inline uint8_t *start(const struct buffer *buffer) { return buffer->bytes + buffer->first; }
// Makes space for `size` bytes at the end of the buffer. The caller writes there, and adds the number of written bytes
// to `end`.
uint8_t *room(struct buffer *buffer, size_t size);
void append(struct buffer *buffer, const void *bytes, size_t size);

// A TLS context from one PEM file, which contains its certificate, its key and its only authority. The peer's
// certificate must be from this authority.
SSL_CTX *mutual_tls(bool server, const char *pem);

// Starts TLS on the connection's socket.
void secure(struct connection *connection, SSL_CTX *context, bool server);

// Makes a socket non-blocking and disables Nagle's algorithm.
void prepare(int socket);

// Connects to a host, from the local address `from` unless that is null. Fails if the host refuses for 5 s.
struct connection dial(const char *host, int port, const char *from);

// Sends pending bytes until the socket accepts no more. Returns false if the connection has ended.
bool flush(struct connection *connection);

// Receives the bytes that have arrived, at most 256 KiB from a plain connection. Returns false if the connection has
// ended.
bool fill(struct connection *connection);

// Waits until bytes can be received, or until pending bytes can be sent.
void await_socket(const struct connection *connection, int milliseconds);
