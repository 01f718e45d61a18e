#include "CQRCode.h"

bool cqrcode_encode(const uint8_t *text, size_t length, bool is_ascii, int version_max, uint8_t *copy, uint8_t *scratch,
                    uint8_t *code) {
  uint8_t mark[4];
  struct qrcodegen_Segment segments[] = {qrcodegen_makeEci(26, mark), qrcodegen_makeBytes(text, length, copy)};
  return qrcodegen_encodeSegmentsAdvanced(segments + is_ascii, 2 - is_ascii, qrcodegen_Ecc_LOW, 1, version_max,
                                          qrcodegen_Mask_AUTO, true, scratch, code);
}
