#include "CNettle.h"

#include <nettle/ecc-curve.h>
#include <nettle/ecc.h>
#include <nettle/ecdsa.h>

static void import(mpz_t number, const uint8_t bytes[32]) { mpz_import(number, 32, 1, 1, 1, 0, bytes); }

bool cnettle_verify_p256(const uint8_t point[64], const uint8_t digest[32], const uint8_t signature[64]) {
  struct ecc_point key;
  ecc_point_init(&key, nettle_get_secp_256r1());
  mpz_t x, y;
  mpz_inits(x, y, NULL);
  import(x, point);
  import(y, point + 32);
  bool isGenuine = ecc_point_set(&key, x, y);
  if (isGenuine) {
    struct dsa_signature numbers;
    dsa_signature_init(&numbers);
    import(numbers.r, signature);
    import(numbers.s, signature + 32);
    isGenuine = ecdsa_verify(&key, 32, digest, &numbers);
    dsa_signature_clear(&numbers);
  }
  mpz_clears(x, y, NULL);
  ecc_point_clear(&key);
  return isGenuine;
}
