// An independent Causeway node with one link, written from docs/protocol.md. TLS is OpenSSL over buffers in memory.
// Sealed frames bypass TLS beside its records. Every tag is verified. Each error for which a node would close the link
// ends the program.
#define _GNU_SOURCE
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

enum {
  HELLO = 1, PING = 2, PONG = 3, GOODBYE = 4, ADVERTISEMENT = 16, SEALED = 37,
  HEADER_BYTES = 48, SEQUENCE_BYTES = 8, TAG_BYTES = 16, HEAD_BYTES = HEADER_BYTES + SEQUENCE_BYTES + TAG_BYTES,
  MARKER = 0x81, SEALED_FLAG = 1, ACCEPTS_BYPASS = 8, PAYLOAD_MAX = 16640, HOPS = 16, INTERACTIVE = 2, BULK = 3,
  RECORD_HEADER_BYTES = 5, RECORD_BYTES = 16384, POINT_BYTES = 65, SIGNATURE_BYTES = 64, PUBLIC_KEY_BYTES = 91,
  ADVERTISEMENT_HEAD_BYTES = 20 + POINT_BYTES, NEIGHBOUR_BYTES = 24, NODES_MAX = 300, NEIGHBOURS_MAX = 64,
};
static const double SETUP_SECONDS = 15;

struct node {
  uint8_t id[ID_BYTES];
  int neighbours;
  uint8_t neighbour[NEIGHBOURS_MAX][ID_BYTES];
};

struct link {
  SSL *tls;
  BIO *received, *to_send;
  EVP_PKEY *key;
  uint8_t point[POINT_BYTES], id[ID_BYTES], box[ID_BYTES], keys[32];
  char name[16], digits[2 * ID_BYTES + 1];
  uint64_t epoch, sequence_sent, sequence_received;
  uint32_t frames;
  bool shaken, up, beside;
  struct buffer inside, plain;  // frames that wait for encryption; decrypted frames
  int nodes;
  struct node node[NODES_MAX];
};

static void put(uint8_t *to, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; i--, value >>= 8) to[i] = (uint8_t)value;
}

static uint64_t get(const uint8_t *from, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value = value << 8 | from[i];
  return value;
}

// Identity

static void id_of(EVP_PKEY *key, uint8_t *point, uint8_t *id) {
  uint8_t *info = NULL, digest[32];
  if (i2d_PUBKEY(key, &info) != PUBLIC_KEY_BYTES) fail("not a key of P-256");
  EVP_Digest(info, PUBLIC_KEY_BYTES, digest, NULL, EVP_sha256(), NULL);
  memcpy(id, digest, ID_BYTES);
  if (point) memcpy(point, info + PUBLIC_KEY_BYTES - POINT_BYTES, POINT_BYTES);
  OPENSSL_free(info);
}

static EVP_PKEY *key_of(const char *path) {
  if (!path) fail("--key is missing");
  FILE *file = fopen(path, "r");
  EVP_PKEY *key = file ? PEM_read_PrivateKey(file, NULL, NULL, NULL) : EVP_EC_gen("P-256");
  if (!file) {
    file = fopen(path, "w");
    if (!file || !key || !PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL)) fail_with_errno(path);
  }
  fclose(file);
  return key;
}

static X509 *certificate_of(EVP_PKEY *key, const char *name) {
  X509 *certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  X509_NAME *subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)name, -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  X509_sign(certificate, key, EVP_sha256());
  return certificate;
}

static int accept_any_key(int valid, X509_STORE_CTX *store) {
  (void)valid, (void)store;
  return 1;
}

// Sending

static void write_header(struct link *link, uint8_t *to, int type, const uint8_t *destination, int class, size_t size, uint64_t number) {
  bool sealed = type == SEALED;
  to[0] = MARKER, to[1] = (uint8_t)type, to[2] = sealed ? SEALED_FLAG : 0, to[3] = sealed ? HOPS : 1, to[4] = (uint8_t)class, to[5] = 0;
  put(to + 6, size, 2);
  if (destination) memcpy(to + 8, destination, ID_BYTES);
  else memset(to + 8, 0, ID_BYTES);
  memcpy(to + 24, link->id, ID_BYTES);
  put(to + 40, number, 8);
}

static void encrypt(struct endpoint *endpoint) {
  struct link *link = endpoint->link;
  struct buffer *out = &endpoint->connection[0].out;
  while (held(&link->inside)) {
    size_t size = held(&link->inside) > RECORD_BYTES ? RECORD_BYTES : held(&link->inside);
    if (SSL_write(link->tls, start(&link->inside), (int)size) <= 0) fail("SSL_write");
    link->inside.first += size;
  }
  for (size_t size; (size = BIO_ctrl_pending(link->to_send)); out->end += size)
    BIO_read(link->to_send, room(out, size), (int)size);
}

static void send_inside(struct endpoint *endpoint, int type, const uint8_t *destination, int class, const uint8_t *bytes, size_t size,
                        uint64_t number) {
  struct buffer *inside = &endpoint->link->inside;
  write_header(endpoint->link, room(inside, HEADER_BYTES + size), type, destination, class, size, number);
  memcpy(inside->bytes + inside->end + HEADER_BYTES, bytes, size);
  inside->end += HEADER_BYTES + size;
  if (held(inside) >= 4 * RECORD_BYTES) encrypt(endpoint);
}

static void send_sealed(struct endpoint *endpoint, const uint8_t *destination, const uint8_t *bytes, size_t size) {
  struct link *link = endpoint->link;
  int class = endpoint->settings.interactive ? INTERACTIVE : BULK;
  uint64_t number = link->epoch << 32 | ++link->frames;
  if (!link->beside) {
    send_inside(endpoint, SEALED, destination, class, bytes, size, number);
    return;
  }
  if (held(&link->inside)) encrypt(endpoint);
  struct buffer *out = &endpoint->connection[0].out;
  uint8_t *unit = room(out, HEAD_BYTES + size);
  write_header(link, unit, SEALED, destination, class, size, number);
  put(unit + HEADER_BYTES, ++link->sequence_sent, SEQUENCE_BYTES);
  crypto_shorthash_siphashx24(unit + HEADER_BYTES + SEQUENCE_BYTES, unit, HEADER_BYTES + SEQUENCE_BYTES, link->keys);
  memcpy(unit + HEAD_BYTES, bytes, size);
  out->end += HEAD_BYTES + size;
}

static void send_hello(struct endpoint *endpoint) {
  struct link *link = endpoint->link;
  size_t length = strlen(link->name);
  uint8_t hello[64] = {1, 1};
  put(hello + 2, PAYLOAD_MAX, 2);
  put(hello + 4, endpoint->settings.inside ? 0 : ACCEPTS_BYPASS, 4);
  put(hello + 8, link->epoch, 8);
  memcpy(hello + 16, link->id, ID_BYTES);
  hello[32] = (uint8_t)length;
  memcpy(hello + 33, link->name, length);
  send_inside(endpoint, HELLO, NULL, 0, hello, 33 + length, 0);
}

static void send_advertisement(struct endpoint *endpoint, int kind, const uint8_t *body, size_t size) {
  struct link *link = endpoint->link;
  uint8_t text[256] = {(uint8_t)kind}, signature[80];
  put(text + 2, 600, 2);
  put(text + 4, link->epoch, 8);
  put(text + 12, 1, 8);
  memcpy(text + 20, link->point, POINT_BYTES);
  memcpy(text + ADVERTISEMENT_HEAD_BYTES, body, size);
  size += ADVERTISEMENT_HEAD_BYTES;
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  size_t length = sizeof signature;
  if (EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, link->key) != 1 ||
      EVP_DigestSign(context, signature, &length, text, size) != 1)
    fail("signing");
  EVP_MD_CTX_free(context);
  const uint8_t *next = signature;
  ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &next, (long)length);
  BN_bn2binpad(ECDSA_SIG_get0_r(pair), text + size, SIGNATURE_BYTES / 2);
  BN_bn2binpad(ECDSA_SIG_get0_s(pair), text + size + SIGNATURE_BYTES / 2, SIGNATURE_BYTES / 2);
  ECDSA_SIG_free(pair);
  send_inside(endpoint, ADVERTISEMENT, NULL, 0, text, size + SIGNATURE_BYTES, 0);
}

// Advertises a topology with the box as the only neighbour, and a profile with a name and one service.
static void advertise(struct endpoint *endpoint) {
  struct link *link = endpoint->link;
  uint8_t topology[4 + NEIGHBOUR_BYTES] = {0, 1}, profile[64];
  memcpy(topology + 4, link->box, ID_BYTES);
  put(topology + 20, 10, 2);
  put(topology + 22, PAYLOAD_MAX, 2);
  topology[24] = 1;
  send_advertisement(endpoint, 1, topology, sizeof topology);
  int size = snprintf((char *)profile, sizeof profile, "%c%s%ccauseway%c", (int)strlen(link->name), link->name, 8, 0);
  send_advertisement(endpoint, 2, profile, (size_t)size);
}

// Receiving

static struct node *node_of(struct link *link, const uint8_t *id, bool make) {
  for (int i = 0; i < link->nodes; i++)
    if (!memcmp(link->node[i].id, id, ID_BYTES)) return &link->node[i];
  if (!make || link->nodes == NODES_MAX) return NULL;
  memcpy(link->node[link->nodes].id, id, ID_BYTES);
  return &link->node[link->nodes++];
}

static bool lists(struct link *link, const uint8_t *one, const uint8_t *other) {
  struct node *node = node_of(link, one, false);
  for (int i = 0; node && i < node->neighbours; i++)
    if (!memcmp(node->neighbour[i], other, ID_BYTES)) return true;
  return false;
}

static void take_topology(struct link *link, const uint8_t *source, const uint8_t *payload, size_t size) {
  struct node *node = node_of(link, source, true);
  if (!node || size < ADVERTISEMENT_HEAD_BYTES + 4 + SIGNATURE_BYTES || payload[0] != 1) return;
  const uint8_t *body = payload + ADVERTISEMENT_HEAD_BYTES;
  size_t room_for = (size - ADVERTISEMENT_HEAD_BYTES - 4 - SIGNATURE_BYTES) / NEIGHBOUR_BYTES;
  node->neighbours = 0;
  for (size_t i = 0; i < body[1] && i < room_for && i < NEIGHBOURS_MAX; i++)
    memcpy(node->neighbour[node->neighbours++], body + 4 + i * NEIGHBOUR_BYTES, ID_BYTES);
}

static void take_hello(struct endpoint *endpoint, const uint8_t *payload, size_t size) {
  struct link *link = endpoint->link;
  if (size < 34 || memcmp(payload + 16, link->box, ID_BYTES)) fail("the hello names another id than the certificate");
  if (!endpoint->settings.inside) {
    if (!(get(payload + 4, 4) & ACCEPTS_BYPASS)) fail("the box accepts no sealed frames beside TLS");
    if (SSL_export_keying_material(link->tls, link->keys, sizeof link->keys, "EXPORTER-causeway-bypass-v2", 27, NULL, 0, 0) != 1)
      fail("the exporter");
    link->beside = true;
  }
  link->up = true;
  advertise(endpoint);
}

// Handles a received frame. Returns whether the frame contains a message for the application.
static bool take_frame(struct endpoint *endpoint, const uint8_t *header, const uint8_t *payload, size_t size) {
  switch (header[1]) {
    case HELLO: take_hello(endpoint, payload, size); break;
    case PING: send_inside(endpoint, PONG, NULL, 0, payload, size, 0); break;
    case GOODBYE:
      fprintf(stderr, "the box says goodbye %d\n", payload[0]);
      endpoint->connection[0].ended = true;
      break;
    case ADVERTISEMENT: take_topology(endpoint->link, header + 24, payload, size); break;
    // A receiver replies to the sender of the last sealed frame.
    case SEALED:
      if (endpoint->role == RECEIVER) memcpy(endpoint->settings.to[0], header + 24, ID_BYTES);
      return true;
    default: break;
  }
  return false;
}

static bool next_plain(struct endpoint *endpoint, const uint8_t **bytes, size_t *size) {
  struct buffer *plain = &endpoint->link->plain;
  while (held(plain) >= HEADER_BYTES) {
    const uint8_t *frame = start(plain);
    size_t length = get(frame + 6, 2);
    if (frame[0] != MARKER) fail("a frame inside TLS without its marker");
    if (held(plain) < HEADER_BYTES + length) break;
    plain->first += HEADER_BYTES + length;
    *bytes = frame + HEADER_BYTES, *size = length;
    if (take_frame(endpoint, frame, *bytes, length)) return true;
  }
  return false;
}

static void decrypt(struct endpoint *endpoint, const uint8_t *records, size_t size) {
  struct link *link = endpoint->link;
  BIO_write(link->received, records, (int)size);
  if (!link->shaken && SSL_do_handshake(link->tls) == 1) {
    link->shaken = true;
    X509 *certificate = SSL_get1_peer_certificate(link->tls);
    id_of(X509_get0_pubkey(certificate), NULL, link->box);
    X509_free(certificate);
    send_hello(endpoint);
  }
  while (link->shaken) {
    int got = SSL_read(link->tls, room(&link->plain, RECORD_BYTES), RECORD_BYTES);
    if (got > 0) link->plain.end += (size_t)got;
    else if (SSL_get_error(link->tls, got) == SSL_ERROR_WANT_READ) break;
    else { endpoint->connection[0].ended = true; break; }
  }
  encrypt(endpoint);
}

static bool link_next(struct endpoint *endpoint, const uint8_t **bytes, size_t *size) {
  struct link *link = endpoint->link;
  struct buffer *in = &endpoint->connection[0].in;
  for (;;) {
    if (next_plain(endpoint, bytes, size)) return true;
    const uint8_t *unit = start(in);
    if (held(in) && unit[0] == MARKER) {
      if (!link->beside) fail("a sealed frame beside TLS before the hello");
      if (held(in) < HEAD_BYTES) return false;
      size_t length = get(unit + 6, 2);
      if (held(in) < HEAD_BYTES + length) return false;
      uint8_t tag[TAG_BYTES];
      uint64_t sequence = get(unit + HEADER_BYTES, SEQUENCE_BYTES);
      crypto_shorthash_siphashx24(tag, unit, HEADER_BYTES + SEQUENCE_BYTES, link->keys + 16);
      if (sodium_memcmp(tag, unit + HEADER_BYTES + SEQUENCE_BYTES, TAG_BYTES)) fail("a wrong tag");
      if (sequence <= link->sequence_received) fail("a link sequence that does not rise");
      link->sequence_received = sequence;
      in->first += HEAD_BYTES + length;
      *bytes = unit + HEAD_BYTES, *size = length;
      if (take_frame(endpoint, unit, *bytes, length)) return true;
      continue;
    }
    size_t whole = 0;
    while (held(in) - whole >= RECORD_HEADER_BYTES && unit[whole] >= 20 && unit[whole] <= 23) {
      size_t record = RECORD_HEADER_BYTES + get(unit + whole + 3, 2);
      if (held(in) - whole < record) break;
      whole += record;
    }
    if (!whole) {
      if (held(in) && (unit[0] < 20 || unit[0] > 23)) fail("neither a record nor a sealed frame");
      return false;
    }
    in->first += whole;
    decrypt(endpoint, unit, whole);
  }
}

// Opening

// Whether there are routes to and from all other ends of the flow. An idle end needs no route, so only its link must be
// up: its process also serves other idle ends and must not wait.
static bool routed(struct endpoint *endpoint) {
  struct link *link = endpoint->link;
  if (!link->up || endpoint->role == IDLE) return link->up;
  if (!lists(link, link->box, link->id)) return false;
  for (int i = 0; endpoint->role == PUBLISHER && i < endpoint->settings.receivers; i++) {
    const uint8_t *receiver = endpoint->settings.to[i];
    if (!lists(link, link->box, receiver) || !lists(link, receiver, link->box)) return false;
  }
  return true;
}

static void link_open(struct endpoint *endpoint) {
  struct link *link = endpoint->link = calloc(1, sizeof *link);
  struct settings *settings = &endpoint->settings;
  link->key = key_of(settings->key);
  id_of(link->key, link->point, link->id);
  sodium_bin2hex(link->digits, sizeof link->digits, link->id, ID_BYTES);
  snprintf(link->name, sizeof link->name, "%s%d", endpoint->role == PUBLISHER ? "from" : endpoint->role == IDLE ? "idle" : "to", settings->number);
  // The epoch must rise with each start of the node, so its upper half is a time.
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  link->epoch = (uint64_t)((time.tv_sec - 1700000000) * 20 + time.tv_nsec / 50000000) << 32 | randombytes_random();

  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, accept_any_key);
  link->tls = SSL_new(context);
  SSL_use_certificate(link->tls, certificate_of(link->key, link->name));
  SSL_use_PrivateKey(link->tls, link->key);
  link->received = BIO_new(BIO_s_mem()), link->to_send = BIO_new(BIO_s_mem());
  BIO_set_mem_eof_return(link->received, -1);
  SSL_set_bio(link->tls, link->received, link->to_send);
  SSL_set_connect_state(link->tls);

  endpoint->connection[0] = dial(settings->host, settings->port, settings->from);
  SSL_do_handshake(link->tls);
  encrypt(endpoint);
  const uint8_t *bytes;
  size_t size;
  for (double begin = now(); !routed(endpoint);) {
    if (!endpoint_flush(endpoint)) fail("the box has ended the link");
    endpoint_await(endpoint, 100);
    if (!endpoint_fill(endpoint)) fail("the box has ended the link");
    while (link_next(endpoint, &bytes, &size)) {}
    if (now() - begin > SETUP_SECONDS) fail("the box advertises no way to all others");
  }
}

static void link_send(struct endpoint *endpoint, const uint8_t *bytes, size_t size) {
  int count = endpoint->role == PUBLISHER ? endpoint->settings.receivers : 1;
  for (int i = 0; i < count; i++) send_sealed(endpoint, endpoint->settings.to[i], bytes, size);
}

const char *endpoint_id(const struct endpoint *endpoint) { return endpoint->link ? endpoint->link->digits : "-"; }

const char *endpoint_cipher(const struct endpoint *endpoint) {
  SSL *tls = endpoint->link ? endpoint->link->tls : endpoint->connection[0].tls;
  return tls ? SSL_get_cipher(tls) : "none";
}

const struct protocol causeway_protocol = {"causeway", link_open, NULL, link_send, link_next, encrypt};
