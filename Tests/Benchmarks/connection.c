#define _GNU_SOURCE
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RECEIVE_BYTES = 262144, RECORD_BYTES = 16384 };
static const double DIAL_SECONDS = 5;

_Noreturn void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  ERR_print_errors_fp(stderr);
  exit(2);
}

_Noreturn void fail_with_errno(const char *what) {
  perror(what);
  exit(2);
}

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double processor_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

uint8_t *room(struct buffer *buffer, size_t size) {
  if (buffer->first == buffer->end) buffer->first = buffer->end = 0;
  if (buffer->end + size > buffer->capacity && buffer->first) {
    memmove(buffer->bytes, start(buffer), held(buffer));
    buffer->end -= buffer->first;
    buffer->first = 0;
  }
  if (buffer->end + size > buffer->capacity) {
    buffer->capacity = (buffer->end + size) * 2;
    buffer->bytes = realloc(buffer->bytes, buffer->capacity);
    if (!buffer->bytes) fail("no memory");
  }
  return buffer->bytes + buffer->end;
}

void append(struct buffer *buffer, const void *bytes, size_t size) {
  memcpy(room(buffer, size), bytes, size);
  buffer->end += size;
}

SSL_CTX *mutual_tls(bool server, const char *pem) {
  SSL_CTX *context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  if (SSL_CTX_use_certificate_file(context, pem, SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, pem, SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_load_verify_file(context, pem) != 1)
    fail("the certificate cannot be read");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (server ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
  // There is only one cipher suite, so that all compared systems encrypt in the same way.
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Read-ahead reads several records with one system call.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, 65536);
  return context;
}

void secure(struct connection *connection, SSL_CTX *context, bool server) {
  connection->tls = SSL_new(context);
  SSL_set_fd(connection->tls, connection->socket);
  if (server)
    SSL_set_accept_state(connection->tls);
  else
    SSL_set_connect_state(connection->tls);
}

void prepare(int socket) {
  int on = 1;
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

struct connection dial(const char *host, int port, const char *from) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in here = {.sin_family = AF_INET};
  inet_pton(AF_INET, host, &there.sin_addr);
  for (double begin = now();;) {
    struct connection connection = {.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (from && (inet_pton(AF_INET, from, &here.sin_addr) != 1 || bind(connection.socket, (void *)&here, sizeof here)))
      fail_with_errno("the address to connect from");
    if (!connect(connection.socket, (void *)&there, sizeof there)) {
      prepare(connection.socket);
      return connection;
    }
    close(connection.socket);
    if (now() - begin > DIAL_SECONDS) fail_with_errno("connect");
    usleep(20000);
  }
}

static bool tls_waits(const struct connection *connection, int result) {
  int error = SSL_get_error(connection->tls, result);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

bool flush(struct connection *connection) {
  struct buffer *out = &connection->out;
  while (held(out) && !connection->ended) {
    ssize_t sent;
    if (connection->tls) {
      int size = held(out) > RECORD_BYTES ? RECORD_BYTES : (int)held(out);
      sent = SSL_write(connection->tls, start(out), size);
      if (sent <= 0 && tls_waits(connection, (int)sent)) break;
    } else {
      sent = send(connection->socket, start(out), held(out), MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) break;
      if (sent < 0 && errno == EINTR) continue;
    }
    if (sent <= 0)
      connection->ended = true;
    else
      out->first += (size_t)sent;
  }
  return !connection->ended;
}

static bool fill_by_tls(struct connection *connection) {
  // TLS may have read more than it returned. poll does not report such bytes, so this loop reads until nothing is left.
  for (;;) {
    int got = SSL_read(connection->tls, room(&connection->in, RECORD_BYTES), RECORD_BYTES);
    if (got > 0) {
      connection->in.end += (size_t)got;
      continue;
    }
    connection->ended = connection->ended || !tls_waits(connection, got);
    return !connection->ended;
  }
}

bool fill(struct connection *connection) {
  if (connection->tls) return fill_by_tls(connection);
  ssize_t got = recv(connection->socket, room(&connection->in, RECEIVE_BYTES), RECEIVE_BYTES, 0);
  if (got > 0)
    connection->in.end += (size_t)got;
  else if (got == 0 || (errno != EAGAIN && errno != EINTR))
    connection->ended = true;
  return !connection->ended;
}

void await_socket(const struct connection *connection, int milliseconds) {
  struct pollfd what = {connection->socket, (short)(POLLIN | (held(&connection->out) ? POLLOUT : 0)), 0};
  poll(&what, 1, milliseconds);
}
