// Project Nayuki's QR code generator library, and a shim that encodes UTF-8 text.
#pragma once
#include <CSystem.h>
#include <qrcodegen/qrcodegen.h>

/// Encodes UTF-8 text. Unless the text is ASCII, a marker for UTF-8 precedes it, because readers would guess the
/// character set without it (ISO/IEC 18004, 7.4.3; ECI 26). `copy` is as long as `text`; `scratch` and `code` have the
/// size that qrcodegen.h requires for `version_max`. Returns false if the text is too long.
bool cqrcode_encode(const uint8_t *_Nonnull text, size_t length, bool is_ascii, int version_max, uint8_t *_Nonnull copy,
                    uint8_t *_Nonnull scratch, uint8_t *_Nonnull code);
