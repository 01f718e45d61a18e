#include "CMbedTLS.h"
