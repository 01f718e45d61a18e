// A module needs a source; the library has all that is called.
#include "CSodium.h"
