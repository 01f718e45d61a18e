// The parsers of INI (libinih) and JSON (jansson), and the shims that Swift needs to call libinih.
#pragma once
#include <CSystem.h>
#include <ini.h>
#include <jansson.h>

/// The maximum length of an INI line in bytes, without the line terminator.
#define CFORMATS_INI_LINE_MAX 1020

/// Receives one `name = value` of an INI file and its line number. A handler returns zero to stop the parser.
typedef int (*cformats_ini_handler)(void *_Nullable user, const char *_Nonnull section, const char *_Nonnull name,
                                    const char *_Nonnull value, int line);

/// Parses INI text and stops at the first error. Continuation lines and comments after a value are not supported.
/// Returns 0, or the line of the first error. `text` needs no terminating zero and must not contain one.
int cformats_parse_ini(const char *_Nonnull text, size_t length, cformats_ini_handler _Nonnull handler,
                       void *_Nullable user);
