// SipHash-2-4 with 128-bit output from libsodium: `crypto_shorthash_siphashx24`.
#pragma once
#include <CSystem.h>
#include <sodium/crypto_shorthash_siphash24.h>
