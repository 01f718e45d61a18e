// ECDSA signatures in TLS, DTLS and certificates are verified by nettle: mbedTLS takes eight times as long, because it blinds
// what is public. The linker puts the function below in the place of mbedTLS's own where mbedtls_pk_verify calls it.
#include <CNettle.h>

#include "CMbedTLS.h"

enum { P256_BYTES = 32 };

int __real_mbedtls_ecdsa_read_signature(mbedtls_ecdsa_context *key, const unsigned char *hash, size_t hash_length,
                                        const unsigned char *signature, size_t signature_length);
int __wrap_mbedtls_ecdsa_read_signature(mbedtls_ecdsa_context *key, const unsigned char *hash, size_t hash_length,
                                        const unsigned char *signature, size_t signature_length);

/// Over P-256, of a hash of 32 bytes and more, of which the first 32 count (FIPS 186-5, 6.4.2). Everything else is left to
/// mbedTLS.
int __wrap_mbedtls_ecdsa_read_signature(mbedtls_ecdsa_context *key, const unsigned char *hash, size_t hash_length,
                                        const unsigned char *signature, size_t signature_length) {
  if (mbedtls_ecp_keypair_get_group_id(key) != MBEDTLS_ECP_DP_SECP256R1 || hash_length < P256_BYTES)
    return __real_mbedtls_ecdsa_read_signature(key, hash, hash_length, signature, signature_length);
  unsigned char point[1 + 2 * P256_BYTES], numbers[2 * P256_BYTES];
  size_t count = 0;
  int failure = mbedtls_ecp_write_public_key(key, MBEDTLS_ECP_PF_UNCOMPRESSED, &count, point, sizeof point);
  if (failure != 0) return failure;
  failure = mbedtls_ecdsa_der_to_raw(8 * P256_BYTES, signature, signature_length, numbers, sizeof numbers, &count);
  if (failure != 0) return failure;
  return cnettle_verify_p256(point + 1, hash, numbers) ? 0 : MBEDTLS_ERR_ECP_VERIFY_FAILED;
}
