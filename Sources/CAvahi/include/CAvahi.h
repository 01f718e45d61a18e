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

/// The longest time that one D-Bus call may block the reactor, in milliseconds. libavahi-client makes blocking calls,
/// which libdbus limits to 25 s by default. Every program is linked with `--wrap` (Package.swift), so this limit
/// applies instead.
#define CAVAHI_CALL_MILLISECONDS_MAX 1000

/// Sets the name and the type of the service that this node publishes. An example of a type is "_causeway._tcp".
/// Browsing.c describes how the call changes libavahi-core's behaviour for this type.
void cavahi_set_own_service(const char *name, const char *type);

/// Reads the next datagram without removing it, as recv(2) does with MSG_PEEK, MSG_TRUNC and MSG_DONTWAIT.
///
/// Stores in `source` the number to which rate limits charge the source address. The number is the lower half of
/// ::ffff:a.b.c.d for IPv4, `cavahi_source6` for IPv6, and 0 for other datagrams. Stores in `interface` the index of
/// the interface over which the datagram arrived, or 0 if it is unknown. The socket must have the option IP_PKTINFO or
/// IPV6_RECVPKTINFO to report the interface.
ssize_t cavahi_peek(int descriptor, void *_Nullable buffer, size_t size, uint64_t *_Nonnull source, uint32_t *_Nonnull interface);

/// The number to which rate limits charge an IPv6 address of 16 bytes. The number is the lower half of a link-local
/// address, or the upper half (the network) of any other address. The highest bit is always set.
uint64_t cavahi_source6(const uint8_t *_Nonnull address);

/// Suppresses libavahi-core's log on standard error. The box reports relevant problems of the responder in its journal.
void cavahi_silence_log(void);
