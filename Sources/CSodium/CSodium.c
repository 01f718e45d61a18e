// SwiftPM requires a source file for a module; the library contains all functions that are called.
#include "CSodium.h"
