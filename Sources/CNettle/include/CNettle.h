// ECDSA verification over P-256 with nettle, in a form that Swift can call, and nettle's SHA-256.
#pragma once
#include <CSystem.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdint.h>

/// Whether `signature` over the SHA-256 `digest` was made with the key of `point`. `signature` is r ‖ s and `point` x ‖
/// y, 32 bytes each, big-endian. Returns false if the point is not on the curve, or if r or s is outside 1 … n − 1
/// (FIPS 186-5, section 6.4.2). All inputs are public, so the computation need not take constant time.
bool cnettle_verify_p256(const uint8_t point[_Nonnull 64], const uint8_t digest[_Nonnull 32],
                         const uint8_t signature[_Nonnull 64]);
