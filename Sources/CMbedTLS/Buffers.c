// Releases the memory of the two record buffers of a TLS context, 34 KB. A handshake uses nearly all of this memory,
// because mbedTLS also writes temporary data there. An idle link needs only the first page of each buffer.
#include "CMbedTLS.h"

// The start of each buffer contains a sequence number, which must not be released.
enum { KEPT_BYTES = 64 };

static void release(unsigned char *_Nonnull buffer) {
  csystem_release_pages(buffer + KEPT_BYTES, malloc_usable_size(buffer) - KEPT_BYTES);
}

void cmbedtls_release_buffers(mbedtls_ssl_context *ssl) {
  if (ssl->MBEDTLS_PRIVATE(in_left) != 0 || ssl->MBEDTLS_PRIVATE(out_left) != 0) return;
  release(ssl->MBEDTLS_PRIVATE(in_buf));
  release(ssl->MBEDTLS_PRIVATE(out_buf));
}
