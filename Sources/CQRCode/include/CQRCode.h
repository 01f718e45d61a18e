// The QR code generator library of Project Nayuki, and the shim that makes a code of a text in UTF-8.
#pragma once
#include <CSystem.h>
#include <qrcodegen/qrcodegen.h>

/// Encodes bytes of UTF-8, with the mark for UTF-8 before them where they are not ASCII: without it readers guess (ISO/IEC 18004,
/// 7.4.3; ECI 26). `copy` has as many bytes as `text`; `scratch` and `code` as qrcodegen.h says for `version_max`. False when the
/// text is too long.
bool cqrcode_encode(const uint8_t *_Nonnull text, size_t length, bool is_ascii, int version_max, uint8_t *_Nonnull copy,
                    uint8_t *_Nonnull scratch, uint8_t *_Nonnull code);
