// Releases the memory of a context's two record buffers, 34 KB. A handshake touches nearly all of it, because much of
// what it writes goes through scratch space there. An idle link needs only the first page of each.
#include "CMbedTLS.h"

// The start of each buffer holds a sequence number, which must stay.
enum { KEPT_BYTES = 64 };

static void release(unsigned char *_Nonnull buffer) {
  csystem_release_pages(buffer + KEPT_BYTES, malloc_usable_size(buffer) - KEPT_BYTES);
}

void cmbedtls_release_buffers(mbedtls_ssl_context *ssl) {
  if (ssl->MBEDTLS_PRIVATE(in_left) != 0 || ssl->MBEDTLS_PRIVATE(out_left) != 0) return;
  release(ssl->MBEDTLS_PRIVATE(in_buf));
  release(ssl->MBEDTLS_PRIVATE(out_buf));
}
