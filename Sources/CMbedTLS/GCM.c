/// AES-GCM (NIST SP 800-38D) for mbedTLS, by nettle: mbedTLS's own takes ten times as long on a processor with instructions
/// for AES and carry-less multiplication. These functions stand before those of the same names in mbedTLS's library.

#include "CMbedTLS.h"

#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif
#include <mbedtls/constant_time.h>
#include <mbedtls/gcm.h>
#include <mbedtls/platform_util.h>
#include <nettle/gcm.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct Cipher {
  unsigned int keyBits;
  union {
    struct gcm_aes128_ctx aes128;
    struct gcm_aes192_ctx aes192;
    struct gcm_aes256_ctx aes256;
  };
};

/// mbedTLS reserves and clears its context for its own fields; here it has a pointer.
static struct Cipher **place(mbedtls_gcm_context *context) {
  _Static_assert(sizeof(mbedtls_gcm_context) >= sizeof(struct Cipher *), "the context has room for a pointer");
  return (struct Cipher **)context;
}

void mbedtls_gcm_init(mbedtls_gcm_context *context) { memset(context, 0, sizeof *context); }

void mbedtls_gcm_free(mbedtls_gcm_context *context) {
  if (!context || !*place(context)) return;
  mbedtls_platform_zeroize(*place(context), sizeof(struct Cipher));
  free(*place(context));
  *place(context) = NULL;
}

int mbedtls_gcm_setkey(
  mbedtls_gcm_context *context, mbedtls_cipher_id_t id, const unsigned char *key, unsigned int keyBits) {
  if (id != MBEDTLS_CIPHER_ID_AES || (keyBits != 128 && keyBits != 192 && keyBits != 256)) {
    return MBEDTLS_ERR_GCM_BAD_INPUT;
  }
  struct Cipher *cipher = *place(context);
  if (!cipher) cipher = calloc(1, sizeof *cipher);
  if (!cipher) return MBEDTLS_ERR_CIPHER_ALLOC_FAILED;
  *place(context) = cipher;
  cipher->keyBits = keyBits;
  switch (keyBits) {
    case 128: gcm_aes128_set_key(&cipher->aes128, key); break;
    case 192: gcm_aes192_set_key(&cipher->aes192, key); break;
    default: gcm_aes256_set_key(&cipher->aes256, key);
  }
  return 0;
}

#define RUN(size)                                                       \
  do {                                                                  \
    struct gcm_aes##size##_ctx *gcm = &cipher->aes##size;               \
    gcm_aes##size##_set_iv(gcm, ivLength, iv);                          \
    gcm_aes##size##_update(gcm, addLength, add);                        \
    if (mode == MBEDTLS_GCM_ENCRYPT) {                                  \
      gcm_aes##size##_encrypt(gcm, length, output, input);              \
    } else {                                                            \
      gcm_aes##size##_decrypt(gcm, length, output, input);              \
    }                                                                   \
    gcm_aes##size##_digest(gcm, tagLength, tag);                        \
  } while (0)

int mbedtls_gcm_crypt_and_tag(
  mbedtls_gcm_context *context, int mode, size_t length, const unsigned char *iv, size_t ivLength,
  const unsigned char *add, size_t addLength, const unsigned char *input, unsigned char *output, size_t tagLength,
  unsigned char *tag) {
  struct Cipher *cipher = *place(context);
  // Output is the input, or does not overlap it.
  bool overlaps = output != input && output < input + length && input < output + length;
  if (!cipher || ivLength == 0 || tagLength < 4 || tagLength > 16 || overlaps) return MBEDTLS_ERR_GCM_BAD_INPUT;
  switch (cipher->keyBits) {
    case 128: RUN(128); break;
    case 192: RUN(192); break;
    default: RUN(256);
  }
  return 0;
}

int mbedtls_gcm_auth_decrypt(
  mbedtls_gcm_context *context, size_t length, const unsigned char *iv, size_t ivLength, const unsigned char *add,
  size_t addLength, const unsigned char *tag, size_t tagLength, const unsigned char *input, unsigned char *output) {
  unsigned char expected[16];
  int code = mbedtls_gcm_crypt_and_tag(
    context, MBEDTLS_GCM_DECRYPT, length, iv, ivLength, add, addLength, input, output, tagLength, expected);
  if (code) return code;
  if (mbedtls_ct_memcmp(expected, tag, tagLength) == 0) return 0;
  mbedtls_platform_zeroize(output, length);
  return MBEDTLS_ERR_GCM_AUTH_FAILED;
}

// Nothing here encrypts a text in parts.

int mbedtls_gcm_starts(mbedtls_gcm_context *context, int mode, const unsigned char *iv, size_t ivLength) {
  return MBEDTLS_ERR_GCM_BAD_INPUT;
}

int mbedtls_gcm_update_ad(mbedtls_gcm_context *context, const unsigned char *add, size_t addLength) {
  return MBEDTLS_ERR_GCM_BAD_INPUT;
}

int mbedtls_gcm_update(
  mbedtls_gcm_context *context, const unsigned char *input, size_t inputLength, unsigned char *output,
  size_t outputSize, size_t *outputLength) {
  return MBEDTLS_ERR_GCM_BAD_INPUT;
}

int mbedtls_gcm_finish(
  mbedtls_gcm_context *context, unsigned char *output, size_t outputSize, size_t *outputLength, unsigned char *tag,
  size_t tagLength) {
  return MBEDTLS_ERR_GCM_BAD_INPUT;
}

bool cmbedtls_is_better_at_aes(void) {
#if defined(__aarch64__)
  const unsigned long both = (1 << 3) | (1 << 4);  // HWCAP_AES and HWCAP_PMULL of <asm/hwcap.h>
  return (getauxval(AT_HWCAP) & both) == both;
#else
  unsigned int a, b, c, d;
  const unsigned int both = (1 << 25) | (1 << 1);  // AES-NI and PCLMULQDQ
  return __get_cpuid(1, &a, &b, &c, &d) && (c & both) == both;
#endif
}
