// INI (libinih) and JSON (jansson), and the few shims that Swift needs to reach them.
#pragma once
#include <CSystem.h>
#include <ini.h>
#include <jansson.h>

/// The most bytes of one line of an INI file, without its line end.
#define CFORMATS_INI_LINE_MAX 1020

/// One `name = value` of an INI file, with the line it stands on; return zero to stop.
typedef int (*cformats_ini_handler)(void *_Nullable user, const char *_Nonnull section, const char *_Nonnull name,
                                    const char *_Nonnull value, int line);

/// Parse INI text: no continuation lines, no comments behind a value, stop at the first error.
/// Returns 0, or the line of the first error. `text` needs no terminating zero but must hold none either.
int cformats_parse_ini(const char *_Nonnull text, size_t length, cformats_ini_handler _Nonnull handler,
                       void *_Nullable user);
