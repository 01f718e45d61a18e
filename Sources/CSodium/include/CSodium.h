// SipHash-2-4 with an output of 128 bits, by libsodium: `crypto_shorthash_siphashx24`.
#pragma once
#include <CSystem.h>
#include <sodium/crypto_shorthash_siphash24.h>
