"""The kernel's clock, as the machine's NTP client would set it (adjtimex(2))."""

import ctypes
import os

ADJ_MAXERROR, ADJ_ESTERROR, ADJ_STATUS = 0x0004, 0x0008, 0x0010
STA_UNSYNC = 0x0040


class _Timex(ctypes.Structure):
    """The C type struct timex up to its member `status`, with space for the remaining members."""

    _fields_ = [
        ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("frequency", ctypes.c_long),
        ("maximum_error", ctypes.c_long), ("estimated_error", ctypes.c_long), ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    ]


_libc = ctypes.CDLL(None, use_errno=True)


def set_synchronised(is_synchronised):
    """Declare the kernel's clock synchronised or not synchronised. A synchronised clock stays so for hours, while the
    kernel raises the maximum error every second."""
    timex = _Timex(modes=ADJ_STATUS | ADJ_MAXERROR | ADJ_ESTERROR, status=0 if is_synchronised else STA_UNSYNC)
    if _libc.adjtimex(ctypes.byref(timex)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"adjtimex: {os.strerror(code)}")
