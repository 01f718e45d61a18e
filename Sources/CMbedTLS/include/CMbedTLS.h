// mbedTLS 3.6 for Swift: the library's headers, and wrappers for function-like macros and private fields, which Swift
// does not import.
#pragma once
#include <CSystem.h>
#include <stdbool.h>
#include <mbedtls/base64.h>
#include <mbedtls/constant_time.h>
#include <mbedtls/des.h>
#include <mbedtls/ecdsa.h>
#include <mbedtls/ecp.h>
#include <mbedtls/entropy.h>
#include <mbedtls/gcm.h>
#include <mbedtls/md.h>
#include <mbedtls/pem.h>
#include <mbedtls/pk.h>
#include <mbedtls/pkcs5.h>
#include <mbedtls/platform_util.h>
#include <mbedtls/psa_util.h>
#include <mbedtls/sha256.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ciphersuites.h>
#include <mbedtls/x509_crl.h>
#include <mbedtls/x509_crt.h>
#include <psa/crypto.h>

/// The signature algorithm: deterministic ECDSA (RFC 6979), so that a weak random number cannot reveal the private key.
static inline psa_algorithm_t cmbedtls_ecdsa_sha256(void) {
  return PSA_ALG_DETERMINISTIC_ECDSA(PSA_ALG_SHA_256);
}
static inline psa_key_attributes_t cmbedtls_key_attributes(void) { return psa_key_attributes_init(); }
/// The elliptic-curve key in a key context. The context must contain an EC key.
static inline mbedtls_ecp_keypair *_Nonnull cmbedtls_ec(const mbedtls_pk_context *_Nonnull pk) {
  return mbedtls_pk_ec(*pk);
}
/// Whether AES-GCM is faster on this processor than ChaCha20-Poly1305. nettle's AES-GCM (GCM.c) is several times faster
/// if the processor has instructions for AES and carry-less multiplication. Without these instructions AES-GCM is not
/// faster. The Raspberry Pi 5 and later have the instructions.
bool cmbedtls_is_better_at_aes(void);
/// Limits the signature checks of mbedTLS on this thread until `cmbedtls_end_checks`. The caller limits a step of a
/// handshake, or the evaluation of a peer's chain. Until the end, mbedTLS checks only signatures by RSA keys of at most
/// 4096 bits and by P-256, P-384 or P-521 keys. The total time is at most that of 80 P-256 checks. All other signatures
/// are treated as wrong.
void cmbedtls_begin_checks(void);
void cmbedtls_end_checks(void);
/// Records the results of the checks that follow, until `cmbedtls_replay_checks` or `cmbedtls_end_checks`.
void cmbedtls_record_checks(void);
/// Answers checks from the recorded results, until `cmbedtls_end_checks`. A check that was not recorded fails, and takes
/// no time.
void cmbedtls_replay_checks(void);
/// The number of signatures checked since the last `cmbedtls_begin_checks`.
unsigned cmbedtls_checks(void);
/// The time of all checks of this thread so far, in units of one P-256 signature check.
uint64_t cmbedtls_cost_of_checks(void);
/// The description byte of the alert that ended the connection. The value is valid directly after a call that returned
/// MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE. The library leaves the two bytes of the alert in its message buffer and has no
/// function that returns them.
static inline uint8_t cmbedtls_alert_description(const mbedtls_ssl_context *_Nonnull ssl) {
  return ssl->MBEDTLS_PRIVATE(in_msg)[1];
}
/// Returns complete pages of the record buffers to the system until the buffers are written again. Call this function
/// when a TLS handshake has ended and nothing else was read. The buffers are empty at that moment, because no handshake
/// message may share a record with data after a change of keys (RFC 8446, section 5.1). The function does nothing while
/// a buffer contains part of a record.
void cmbedtls_release_buffers(mbedtls_ssl_context *_Nonnull ssl);
/// Sets the entropy source of the library's random generator. Call this function before `psa_crypto_init`. Simulations
/// set their own source, so that their random numbers are reproducible. mbedTLS declares the function in
/// psa_crypto_invasive.h, which is not installed.
psa_status_t mbedtls_psa_crypto_configure_entropy_sources(
  void (*_Nonnull entropy_init)(mbedtls_entropy_context *_Nullable ctx),
  void (*_Nonnull entropy_free)(mbedtls_entropy_context *_Nullable ctx));
/// Removes the default sources of a new entropy context.
static inline void cmbedtls_entropy_drop_sources(mbedtls_entropy_context *_Nonnull ctx) {
  ctx->MBEDTLS_PRIVATE(source_count) = 0;
}
/// Whether the signature of a revocation list uses a strong hash: one that mbedTLS's default profile allows, SHA-256 or
/// stronger.
static inline bool cmbedtls_list_is_strong(const mbedtls_x509_crl *_Nonnull list) {
  return (mbedtls_x509_crt_profile_default.allowed_mds & MBEDTLS_X509_ID_FLAG(list->MBEDTLS_PRIVATE(sig_md))) != 0;
}
/// Whether the signature of a certificate uses a strong hash, as for lists.
static inline bool cmbedtls_is_strong(const mbedtls_x509_crt *_Nonnull crt) {
  return (mbedtls_x509_crt_profile_default.allowed_mds & MBEDTLS_X509_ID_FLAG(crt->MBEDTLS_PRIVATE(sig_md))) != 0;
}
/// Whether a certificate is signed with an RSA key of more than 4096 bits, which `cmbedtls_begin_checks` forbids.
static inline bool cmbedtls_has_long_signature(const mbedtls_x509_crt *_Nonnull crt) {
  mbedtls_pk_type_t kind = crt->MBEDTLS_PRIVATE(sig_pk);
  return (kind == MBEDTLS_PK_RSA || kind == MBEDTLS_PK_RSASSA_PSS) && crt->MBEDTLS_PRIVATE(sig).len > 4096 / 8;
}
/// Whether the signature of a parsed revocation list was made with `key`. `body` points to the signed `count` bytes,
/// the list's TBSCertList in DER.
bool cmbedtls_list_is_signed(
  const mbedtls_x509_crl *_Nonnull list, const uint8_t *_Nonnull body, size_t count, mbedtls_pk_context *_Nonnull key);
/// Returns 1 if the signature of a parsed certificate was made with `key`, otherwise 0. Returns -1 if the signature was
/// not checked, because `cmbedtls_begin_checks` forbids the check or the algorithm is unknown.
int cmbedtls_is_issued(const mbedtls_x509_crt *_Nonnull certificate, mbedtls_pk_context *_Nonnull key);
/// Returns 1 if a certificate belongs to a certification authority, otherwise 0. The basic constraints of the
/// certificate decide (RFC 5280, section 4.2.1.9).
static inline int cmbedtls_is_authority(const mbedtls_x509_crt *_Nonnull crt) { return crt->MBEDTLS_PRIVATE(ca_istrue); }
/// The maximum number of intermediate certificates below this authority, plus one. The value 0 means no limit.
static inline int cmbedtls_path_length(const mbedtls_x509_crt *_Nonnull crt) { return crt->MBEDTLS_PRIVATE(max_pathlen); }
