// Project Nayuki's QR code generator library, and a shim that encodes UTF-8 text.
#pragma once
#include <CSystem.h>
#include <qrcodegen/qrcodegen.h>

/// Encodes UTF-8 text as the QR code `code`. Unless the text is ASCII, a marker for UTF-8 (ECI 26) precedes the text in
/// the code. Without this marker, readers would guess the character set (ISO/IEC 18004, 7.4.3). `copy` must be as long
/// as `text`. `scratch` and `code` must have the size that qrcodegen.h requires for `version_max`. Returns false if the
/// text is too long.
bool cqrcode_encode(const uint8_t *_Nonnull text, size_t length, bool is_ascii, int version_max, uint8_t *_Nonnull copy,
                    uint8_t *_Nonnull scratch, uint8_t *_Nonnull code);
