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

/// The longest time that one D-Bus call may block the reactor, in milliseconds. libavahi-client makes blocking calls
/// with libdbus's default of 25 s. The firmware is linked with `--wrap` to apply this limit instead.
#define CAVAHI_CALL_MILLISECONDS_MAX 1000

/// Sets the instance that this node publishes, and its service type, such as "_causeway._tcp". Browsing.c describes how
/// libavahi-core then behaves for this type.
void cavahi_set_own_service(const char *name, const char *type);

/// Peeks at the next datagram, as recv(2) with MSG_PEEK, MSG_TRUNC and MSG_DONTWAIT.
///
/// For an IP datagram it stores the number under which the source address is charged: the lower half of ::ffff:a.b.c.d
/// for IPv4, `cavahi_source6` for IPv6. It also stores the interface that the datagram came over, which the socket must
/// report (IP_PKTINFO, IPV6_RECVPKTINFO). Otherwise both are 0.
ssize_t cavahi_peek(int descriptor, void *_Nullable buffer, size_t size, uint64_t *_Nonnull source, uint32_t *_Nonnull interface);

/// The number under which an IPv6 address of 16 bytes is charged: the lower half of a link-local address, or the
/// network half of any other. The highest bit is always set.
uint64_t cavahi_source6(const uint8_t *_Nonnull address);

/// Suppresses libavahi-core's log on standard error. The box reports relevant problems in its own log.
void cavahi_silence_log(void);
