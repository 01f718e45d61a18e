// mbedTLS 3.6 for SecureTransport: its headers, and the function-like macros that Swift does not import.
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

/// Signing is deterministic (RFC 6979): a weak random number can then never give the key away.
static inline psa_algorithm_t cmbedtls_ecdsa_sha256(void) {
  return PSA_ALG_DETERMINISTIC_ECDSA(PSA_ALG_SHA_256);
}
static inline psa_key_attributes_t cmbedtls_key_attributes(void) { return psa_key_attributes_init(); }
/// The elliptic-curve part of a key context that holds an EC key.
static inline mbedtls_ecp_keypair *_Nonnull cmbedtls_ec(const mbedtls_pk_context *_Nonnull pk) {
  return mbedtls_pk_ec(*pk);
}
/// Whether AES-GCM is faster here than ChaCha20-Poly1305: nettle's with the processor's instructions for AES and carry-less
/// multiplication (GCM.c) is, several times; without them it is not. A Raspberry Pi has them from 5 on.
bool cmbedtls_is_better_at_aes(void);
/// From here to `cmbedtls_end_checks` mbedTLS checks signatures over RSA with at most 4096 bits, P-256, P-384 or P-521, and no
/// more of them than take the time of 80 over P-256; others are as wrong. For a step of a handshake, or the evaluation of a
/// chain that somebody else sent.
void cmbedtls_begin_checks(void);
void cmbedtls_end_checks(void);
/// How many were checked since the last begin.
unsigned cmbedtls_checks(void);
/// The time of all that this thread has checked so far, in checks over P-256.
uint64_t cmbedtls_cost_of_checks(void);
/// The description byte of the alert that ended the connection. Valid right after a call returned
/// MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE: the library leaves the alert's two bytes in its message buffer
/// and has no call that returns them.
static inline uint8_t cmbedtls_alert_description(const mbedtls_ssl_context *_Nonnull ssl) {
  return ssl->MBEDTLS_PRIVATE(in_msg)[1];
}
/// Gives whole pages of the record buffers back to the system until they are written again. Call it when a TLS handshake has
/// ended and nothing else was read: then they hold nothing, as no handshake message may share a record with what comes after
/// a change of keys (RFC 8446, 5.1). Does nothing while part of a record is there.
void cmbedtls_release_buffers(mbedtls_ssl_context *_Nonnull ssl);
/// Where the library's generator is seeded from, before `psa_crypto_init`: simulations seed it themselves. Of
/// psa_crypto_invasive.h, which is not installed.
psa_status_t mbedtls_psa_crypto_configure_entropy_sources(
  void (*_Nonnull entropy_init)(mbedtls_entropy_context *_Nullable ctx),
  void (*_Nonnull entropy_free)(mbedtls_entropy_context *_Nullable ctx));
/// Makes a new entropy context forget the sources that it began with.
static inline void cmbedtls_entropy_drop_sources(mbedtls_entropy_context *_Nonnull ctx) {
  ctx->MBEDTLS_PRIVATE(source_count) = 0;
}
/// Whether a revocation list is signed by a hash that is not weak: mbedTLS's default profile, SHA-256 or better.
static inline bool cmbedtls_list_is_strong(const mbedtls_x509_crl *_Nonnull list) {
  return (mbedtls_x509_crt_profile_default.allowed_mds & MBEDTLS_X509_ID_FLAG(list->MBEDTLS_PRIVATE(sig_md))) != 0;
}
/// Whether `key` made the signature of a parsed revocation list over the `count` bytes at `body`, a TBSCertList in DER.
bool cmbedtls_list_is_signed(
  const mbedtls_x509_crl *_Nonnull list, const uint8_t *_Nonnull body, size_t count, mbedtls_pk_context *_Nonnull key);
/// Whether `key` made the signature of a parsed certificate: 1 or 0; -1 when that was not checked, as `cmbedtls_begin_checks` forbids
/// it or the algorithm is unknown.
int cmbedtls_is_issued(const mbedtls_x509_crt *_Nonnull certificate, mbedtls_pk_context *_Nonnull key);
/// Basic constraints (RFC 5280, 4.2.1.9): 1 for a certificate of an authority.
static inline int cmbedtls_is_authority(const mbedtls_x509_crt *_Nonnull crt) { return crt->MBEDTLS_PRIVATE(ca_istrue); }
/// One more than the intermediates that may stand below this authority; 0 for any number.
static inline int cmbedtls_path_length(const mbedtls_x509_crt *_Nonnull crt) { return crt->MBEDTLS_PRIVATE(max_pathlen); }
