/// AES-GCM (NIST SP 800-38D) for mbedTLS, implemented with nettle. mbedTLS's own implementation takes ten times as long
/// on a processor with instructions for AES and carry-less multiplication. The linker uses these functions instead of
/// the functions with the same names in mbedTLS's library, because it finds them first.

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
#include <string.h>

/// The expanded key, stored in the memory of mbedTLS's context. The GHASH table of 4 KiB is not stored but computed for
/// each message, because each link and session has two contexts. With the processor's AES instructions, the computation
/// takes less time than the encryption of one block.
struct Cipher {
  unsigned int keyBits;
  union {
    struct aes128_ctx aes128;
    struct aes192_ctx aes192;
    struct aes256_ctx aes256;
  };
};

static struct Cipher *cipher(mbedtls_gcm_context *context) {
  _Static_assert(sizeof(mbedtls_gcm_context) >= sizeof(struct Cipher), "mbedTLS's context has room for it");
  return (struct Cipher *)context;
}

static nettle_cipher_func *function(const struct Cipher *cipher) {
  switch (cipher->keyBits) {
    case 128: return (nettle_cipher_func *)aes128_encrypt;
    case 192: return (nettle_cipher_func *)aes192_encrypt;
    default: return (nettle_cipher_func *)aes256_encrypt;
  }
}

void mbedtls_gcm_init(mbedtls_gcm_context *context) { memset(context, 0, sizeof *context); }

void mbedtls_gcm_free(mbedtls_gcm_context *context) {
  if (context) mbedtls_platform_zeroize(context, sizeof *context);
}

int mbedtls_gcm_setkey(
  mbedtls_gcm_context *context, mbedtls_cipher_id_t id, const unsigned char *key, unsigned int keyBits) {
  if (id != MBEDTLS_CIPHER_ID_AES) return MBEDTLS_ERR_GCM_BAD_INPUT;
  switch (keyBits) {
    case 128: aes128_set_encrypt_key(&cipher(context)->aes128, key); break;
    case 192: aes192_set_encrypt_key(&cipher(context)->aes192, key); break;
    case 256: aes256_set_encrypt_key(&cipher(context)->aes256, key); break;
    default: return MBEDTLS_ERR_GCM_BAD_INPUT;
  }
  cipher(context)->keyBits = keyBits;
  return 0;
}

int mbedtls_gcm_crypt_and_tag(
  mbedtls_gcm_context *context, int mode, size_t length, const unsigned char *iv, size_t ivLength,
  const unsigned char *add, size_t addLength, const unsigned char *input, unsigned char *output, size_t tagLength,
  unsigned char *tag) {
  // The output must either be the input buffer itself or not overlap the input.
  bool overlaps = output != input && output < input + length && input < output + length;
  if (!cipher(context)->keyBits || ivLength == 0 || tagLength < 4 || tagLength > 16 || overlaps) {
    return MBEDTLS_ERR_GCM_BAD_INPUT;
  }
  nettle_cipher_func *encrypt = function(cipher(context));
  const void *aes = &cipher(context)->aes128;
  struct gcm_key key;
  struct gcm_ctx gcm;
  gcm_set_key(&key, aes, encrypt);
  gcm_set_iv(&gcm, &key, ivLength, iv);
  gcm_update(&gcm, &key, addLength, add);
  if (mode == MBEDTLS_GCM_ENCRYPT) {
    gcm_encrypt(&gcm, &key, aes, encrypt, length, output, input);
  } else {
    gcm_decrypt(&gcm, &key, aes, encrypt, length, output, input);
  }
  gcm_digest(&gcm, &key, aes, encrypt, tagLength, tag);
  mbedtls_platform_zeroize(&key, sizeof key);
  mbedtls_platform_zeroize(&gcm, sizeof gcm);
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

// The remaining functions encrypt a message in parts. This program never calls the functions for parts, so they only
// fail.

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
