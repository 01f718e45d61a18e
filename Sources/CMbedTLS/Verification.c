// Verifies ECDSA signatures in TLS, DTLS and certificates with nettle. mbedTLS takes eight times as long, because it
// blinds even public values. Every program is linked with --wrap (Package.swift), so mbedtls_pk_verify calls the
// function below instead of mbedTLS's own.
#include <CNettle.h>

#include "CMbedTLS.h"

enum { P256_BYTES = 32 };

int __real_mbedtls_ecdsa_read_signature(mbedtls_ecdsa_context *key, const unsigned char *hash, size_t hash_length,
                                        const unsigned char *signature, size_t signature_length);
int __wrap_mbedtls_ecdsa_read_signature(mbedtls_ecdsa_context *key, const unsigned char *hash, size_t hash_length,
                                        const unsigned char *signature, size_t signature_length);

/// Verifies a P-256 signature of a hash of at least 32 bytes. Only the first 32 bytes of the hash are used (FIPS 186-5,
/// section 6.4.2). mbedTLS verifies signatures over other curves and of shorter hashes.
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

// Limits the time that the check of a certificate chain takes. A chain is checked before the peer is known, and the
// peer chooses the keys in the chain. mbedTLS accepts keys of any length, so the check of one chain could take seconds.

enum {
  // Costs are in units of one P-256 check. The maximum is two signatures over P-521, which mbedTLS itself verifies, or
  // four over P-384.
  CHECK_COST_MAX = 80,
  COST_P256 = 1,
  COST_RSA = 4,
  COST_P384 = 20,
  COST_P521 = 40,
  RSA_BITS_MAX = 4096,
  // The usual public exponent is 65537. With an exponent as long as the modulus, a check takes a second or more, as
  // long as making a signature.
  RSA_EXPONENT_BITS_MAX = 32,
};

// The counts are per thread, because a check stays on its thread. So the threads of parallel tests do not disturb each
// other's counts.
static _Thread_local bool is_bounded;
static _Thread_local unsigned checks, cost;
static _Thread_local uint64_t cost_of_all;

// The results of checks, each with the key and the place of the signature in its certificate. A chain has at most nine
// certificates, and at most two wrong signatures are checked (`ChainSignatures`).
enum { RECORDS_MAX = 16 };
static _Thread_local struct {
  const mbedtls_pk_context *key;
  const unsigned char *signature;
  int result;
} records[RECORDS_MAX];
static _Thread_local unsigned recorded;
static _Thread_local enum { CHECKS_PLAIN, CHECKS_RECORDED, CHECKS_REPLAYED } mode;

void cmbedtls_begin_checks(void) {
  is_bounded = true;
  checks = cost = 0;
  mode = CHECKS_PLAIN;
}

void cmbedtls_end_checks(void) {
  is_bounded = false;
  mode = CHECKS_PLAIN;
}

void cmbedtls_record_checks(void) {
  recorded = 0;
  mode = CHECKS_RECORDED;
}

void cmbedtls_replay_checks(void) { mode = CHECKS_REPLAYED; }

static int replay(const mbedtls_pk_context *key, const unsigned char *signature) {
  for (unsigned i = 0; i < recorded; i++)
    if (records[i].key == key && records[i].signature == signature) return records[i].result;
  return MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE;
}

unsigned cmbedtls_checks(void) { return checks; }

uint64_t cmbedtls_cost_of_checks(void) { return cost_of_all; }

/// The cost of a check with this key, or 0 if this program does not check signatures with a key of this kind.
static unsigned cost_of(mbedtls_pk_context *key) {
  switch (mbedtls_pk_get_type(key)) {
  case MBEDTLS_PK_RSA: {
    mbedtls_rsa_context *rsa = mbedtls_pk_rsa(*key);
    bool is_slow = 8 * mbedtls_rsa_get_len(rsa) > RSA_BITS_MAX || mbedtls_mpi_bitlen(&rsa->MBEDTLS_PRIVATE(E)) > RSA_EXPONENT_BITS_MAX;
    return is_slow ? 0 : COST_RSA;
  }
  case MBEDTLS_PK_ECKEY:
  case MBEDTLS_PK_ECDSA:
    switch (mbedtls_ecp_keypair_get_group_id(mbedtls_pk_ec(*key))) {
    case MBEDTLS_ECP_DP_SECP256R1: return COST_P256;
    case MBEDTLS_ECP_DP_SECP384R1: return COST_P384;
    case MBEDTLS_ECP_DP_SECP521R1: return COST_P521;
    default: return 0;
    }
  default: return 0;
  }
}

int __real_mbedtls_pk_verify_ext(mbedtls_pk_type_t type, const void *options, mbedtls_pk_context *key, mbedtls_md_type_t md,
                                 const unsigned char *hash, size_t hash_length, const unsigned char *signature, size_t signature_length);
int __wrap_mbedtls_pk_verify_ext(mbedtls_pk_type_t type, const void *options, mbedtls_pk_context *key, mbedtls_md_type_t md,
                                 const unsigned char *hash, size_t hash_length, const unsigned char *signature, size_t signature_length);

int __wrap_mbedtls_pk_verify_ext(mbedtls_pk_type_t type, const void *options, mbedtls_pk_context *key, mbedtls_md_type_t md,
                                 const unsigned char *hash, size_t hash_length, const unsigned char *signature, size_t signature_length) {
  if (mode == CHECKS_REPLAYED) return replay(key, signature);
  unsigned next = cost_of(key);
  if (is_bounded && (next == 0 || cost + next > CHECK_COST_MAX)) return MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE;
  checks++;
  cost += next;
  cost_of_all += next;
  int result = __real_mbedtls_pk_verify_ext(type, options, key, md, hash, hash_length, signature, signature_length);
  if (mode == CHECKS_RECORDED && recorded < RECORDS_MAX) {
    records[recorded].key = key;
    records[recorded].signature = signature;
    records[recorded++].result = result;
  }
  return result;
}

int __wrap_mbedtls_x509_crt_verify_restartable(mbedtls_x509_crt *chain, mbedtls_x509_crt *anchors, mbedtls_x509_crl *lists,
                                               const mbedtls_x509_crt_profile *profile, const char *name, uint32_t *flags,
                                               int (*decide)(void *, mbedtls_x509_crt *, int, uint32_t *), void *context,
                                               mbedtls_x509_crt_restart_ctx *restart);

/// Replaces mbedTLS's verification of a chain in a handshake. mbedTLS would check a stranger's signatures, and nothing
/// uses the result. This function calls only the callback that decides about the leaf certificate. `PeerChain.evaluate`
/// verifies the chain later if the policy requires a valid chain. A chain that is longer than mbedTLS allows is
/// refused, as mbedTLS would do.
int __wrap_mbedtls_x509_crt_verify_restartable(mbedtls_x509_crt *chain, mbedtls_x509_crt *anchors, mbedtls_x509_crl *lists,
                                               const mbedtls_x509_crt_profile *profile, const char *name, uint32_t *flags,
                                               int (*decide)(void *, mbedtls_x509_crt *, int, uint32_t *), void *context,
                                               mbedtls_x509_crt_restart_ctx *restart) {
  (void)anchors, (void)lists, (void)profile, (void)name, (void)restart;
  unsigned count = 0;
  for (const mbedtls_x509_crt *certificate = chain; certificate != NULL; certificate = certificate->next) count++;
  if (count > 1 + MBEDTLS_X509_MAX_INTERMEDIATE_CA) return MBEDTLS_ERR_X509_FATAL_ERROR;
  *flags = 0;
  int failure = decide == NULL ? MBEDTLS_ERR_X509_FATAL_ERROR : decide(context, chain, 0, flags);
  if (failure != 0) return failure;
  return *flags == 0 ? 0 : MBEDTLS_ERR_X509_CERT_VERIFY_FAILED;
}
