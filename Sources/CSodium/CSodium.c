// SwiftPM requires a source file in a C module, so this file exists. libsodium contains all functions that are called.
#include "CSodium.h"
