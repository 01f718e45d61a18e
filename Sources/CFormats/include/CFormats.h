#pragma once
#include <CSystem.h>
#include <ini.h>
#include <jansson.h>
