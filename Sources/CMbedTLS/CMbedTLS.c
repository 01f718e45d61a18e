#include "CMbedTLS.h"

bool cmbedtls_list_is_signed(
  const mbedtls_x509_crl *list, const uint8_t *body, size_t count, mbedtls_pk_context *key) {
  const mbedtls_md_info_t *md = mbedtls_md_info_from_type(list->MBEDTLS_PRIVATE(sig_md));
  unsigned char hash[MBEDTLS_MD_MAX_SIZE];
  if (md == NULL || mbedtls_md(md, body, count, hash) != 0) return false;
  return mbedtls_pk_verify_ext(
           list->MBEDTLS_PRIVATE(sig_pk), list->MBEDTLS_PRIVATE(sig_opts), key, list->MBEDTLS_PRIVATE(sig_md), hash,
           mbedtls_md_get_size(md), list->MBEDTLS_PRIVATE(sig).p, list->MBEDTLS_PRIVATE(sig).len)
    == 0;
}

int cmbedtls_is_issued(const mbedtls_x509_crt *certificate, mbedtls_pk_context *key) {
  const mbedtls_md_info_t *md = mbedtls_md_info_from_type(certificate->MBEDTLS_PRIVATE(sig_md));
  unsigned char hash[MBEDTLS_MD_MAX_SIZE];
  if (md == NULL || mbedtls_md(md, certificate->tbs.p, certificate->tbs.len, hash) != 0) return -1;
  int failure = mbedtls_pk_verify_ext(
    certificate->MBEDTLS_PRIVATE(sig_pk), certificate->MBEDTLS_PRIVATE(sig_opts), key, certificate->MBEDTLS_PRIVATE(sig_md), hash,
    mbedtls_md_get_size(md), certificate->MBEDTLS_PRIVATE(sig).p, certificate->MBEDTLS_PRIVATE(sig).len);
  return failure == 0 ? 1 : failure == MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE ? -1 : 0;
}
