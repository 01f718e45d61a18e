#pragma once
#include <CSystem.h>
#include <wpa_ctrl.h>
