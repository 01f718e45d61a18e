#pragma once
#include <CSystem.h>
#include <avahi-client/client.h>
#include <avahi-client/lookup.h>
#include <avahi-client/publish.h>
#include <avahi-common/address.h>
#include <avahi-common/alternative.h>
#include <avahi-common/defs.h>
#include <avahi-common/domain.h>
#include <avahi-common/error.h>
#include <avahi-common/malloc.h>
#include <avahi-common/strlst.h>
#include <avahi-common/watch.h>
#include <avahi-core/core.h>
#include <avahi-core/lookup.h>
#include <avahi-core/publish.h>
#include <avahi-core/log.h>
#include <avahi-core/rr.h>
#include <sys/time.h>

/// The longest that one D-Bus call may hold up the reactor, in milliseconds. libavahi-client makes its calls
/// blocking with libdbus's default of 25 s; the firmware is linked with `--wrap` so that this bound holds instead.
#define CAVAHI_CALL_MILLISECONDS_MAX 1000

/// The instance that this node publishes, and its service type, such as "_causeway._tcp". See Browsing.c for what
/// libavahi-core then does otherwise for this type.
void cavahi_set_own_service(const char *name, const char *type);

/// As recv(2) with MSG_PEEK, MSG_TRUNC and MSG_DONTWAIT. For a datagram over IP also the number by which its source address is
/// charged (IPv4 as ::ffff:a.b.c.d, its lower half; IPv6 by `cavahi_source6`) and the interface that it came over, which
/// the socket must report (IP_PKTINFO, IPV6_RECVPKTINFO); else 0.
ssize_t cavahi_peek(int descriptor, void *_Nullable buffer, size_t size, uint64_t *_Nonnull source, uint32_t *_Nonnull interface);

/// The number by which an IPv6 address of 16 bytes is charged: the lower half of a link-local one, the network of another one,
/// each with the highest bit set.
uint64_t cavahi_source6(const uint8_t *_Nonnull address);

/// libavahi-core logs to standard error; the box says what matters in lines of its own.
void cavahi_silence_log(void);
