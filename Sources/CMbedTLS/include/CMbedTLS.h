// mbedTLS 3.6 for Swift: its headers, and wrappers of function-like macros and private fields that Swift does not
// import.
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

/// The signature algorithm: deterministic (RFC 6979), so that a weak random number can never reveal the key.
static inline psa_algorithm_t cmbedtls_ecdsa_sha256(void) {
  return PSA_ALG_DETERMINISTIC_ECDSA(PSA_ALG_SHA_256);
}
static inline psa_key_attributes_t cmbedtls_key_attributes(void) { return psa_key_attributes_init(); }
/// The elliptic-curve part of a key context that holds an EC key.
static inline mbedtls_ecp_keypair *_Nonnull cmbedtls_ec(const mbedtls_pk_context *_Nonnull pk) {
  return mbedtls_pk_ec(*pk);
}
/// Whether AES-GCM is faster on this processor than ChaCha20-Poly1305. nettle's AES-GCM (GCM.c) is several times faster
/// if the processor has instructions for AES and carry-less multiplication, and not faster otherwise. A Raspberry Pi
/// has them from 5 on.
bool cmbedtls_is_better_at_aes(void);
/// Bounds the signature checks of mbedTLS until `cmbedtls_end_checks`. mbedTLS then checks signatures over RSA with at
/// most 4096 bits, P-256, P-384 or P-521, up to the time of 80 P-256 checks. All others count as wrong. Call it for a
/// step of a handshake, or for the evaluation of a chain from a peer.
void cmbedtls_begin_checks(void);
void cmbedtls_end_checks(void);
/// The number of signatures checked since the last `cmbedtls_begin_checks`.
unsigned cmbedtls_checks(void);
/// The time of all checks of this thread so far, in units of one P-256 signature check.
uint64_t cmbedtls_cost_of_checks(void);
/// The description byte of the alert that ended the connection. Valid directly after a call returned
/// MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE. The library leaves the alert's two bytes in its message buffer and has no
/// function that returns them.
static inline uint8_t cmbedtls_alert_description(const mbedtls_ssl_context *_Nonnull ssl) {
  return ssl->MBEDTLS_PRIVATE(in_msg)[1];
}
/// Returns whole pages of the record buffers to the system until they are written again. Call it when a TLS handshake
/// has ended and nothing else was read. The buffers are then empty, because no handshake message may share a record
/// with data after a change of keys (RFC 8446, section 5.1). Does nothing while a buffer contains part of a record.
void cmbedtls_release_buffers(mbedtls_ssl_context *_Nonnull ssl);
/// Sets the entropy source of the library's generator; call it before `psa_crypto_init`. Simulations seed it
/// themselves. Declared in psa_crypto_invasive.h, which is not installed.
psa_status_t mbedtls_psa_crypto_configure_entropy_sources(
  void (*_Nonnull entropy_init)(mbedtls_entropy_context *_Nullable ctx),
  void (*_Nonnull entropy_free)(mbedtls_entropy_context *_Nullable ctx));
/// Removes the default sources of a new entropy context.
static inline void cmbedtls_entropy_drop_sources(mbedtls_entropy_context *_Nonnull ctx) {
  ctx->MBEDTLS_PRIVATE(source_count) = 0;
}
/// Whether the signature of a revocation list uses a strong hash: SHA-256 or better, as in mbedTLS's default profile.
static inline bool cmbedtls_list_is_strong(const mbedtls_x509_crl *_Nonnull list) {
  return (mbedtls_x509_crt_profile_default.allowed_mds & MBEDTLS_X509_ID_FLAG(list->MBEDTLS_PRIVATE(sig_md))) != 0;
}
/// Whether `key` made the signature of a parsed revocation list over the `count` bytes at `body`, a TBSCertList in DER.
bool cmbedtls_list_is_signed(
  const mbedtls_x509_crl *_Nonnull list, const uint8_t *_Nonnull body, size_t count, mbedtls_pk_context *_Nonnull key);
/// Whether `key` made the signature of a parsed certificate: 1 or 0. Returns -1 if that was not checked, because
/// `cmbedtls_begin_checks` forbids it or the algorithm is unknown.
int cmbedtls_is_issued(const mbedtls_x509_crt *_Nonnull certificate, mbedtls_pk_context *_Nonnull key);
/// Whether a certificate is that of an authority: 1 or 0, from the basic constraints (RFC 5280, section 4.2.1.9).
static inline int cmbedtls_is_authority(const mbedtls_x509_crt *_Nonnull crt) { return crt->MBEDTLS_PRIVATE(ca_istrue); }
/// The maximum number of intermediates below this authority plus one; 0 for no limit.
static inline int cmbedtls_path_length(const mbedtls_x509_crt *_Nonnull crt) { return crt->MBEDTLS_PRIVATE(max_pathlen); }
