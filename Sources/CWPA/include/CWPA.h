// The client interface of wpa_supplicant's control socket.
#pragma once
#include <CSystem.h>
#include <wpa_ctrl.h>
