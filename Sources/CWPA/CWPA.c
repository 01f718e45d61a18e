#include "CWPA.h"
