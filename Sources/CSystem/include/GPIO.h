// GPIO lines through the character device of their chip, interface version 2 (Linux 5.10, <linux/gpio.h>).
#pragma once
#include <linux/gpio.h>
#include <stdbool.h>
#include <stdint.h>

/// Opens the device gpiochip<number> in a directory and reads its description. Returns its descriptor, or -1 with errno
/// set (ENOTTY: the file is not a GPIO chip).
int csystem_gpio_open(const char *_Nonnull directory, uint32_t number, struct gpiochip_info *_Nonnull info);

/// Whether the chip has this label or this name.
bool csystem_gpio_is(const struct gpiochip_info *_Nonnull info, const char *_Nonnull chip);

/// Reads the name and the consumer of a line. Returns 0, or -1 with errno set (EINVAL: the chip has no such line).
int csystem_gpio_line(int chip, uint32_t number, struct gpio_v2_line_info *_Nonnull info);

/// Requests a line, with the consumer name “causeway”, until the returned descriptor is closed. `flags`:
/// GPIO_V2_LINE_FLAG_…; `debounce`: µs, for inputs only, 0 for none. An output begins inactive.
///
/// Returns a descriptor that is non-blocking and closed on exec, or -1 with errno set (EBUSY: the line is in use).
int csystem_gpio_request(int chip, uint32_t number, uint64_t flags, uint32_t debounce);

/// Sets a line that was requested as an output. Returns 0, or -1 with errno set (ENODEV: the chip is gone).
int csystem_gpio_set(int line, bool is_active);

/// Accessors for text members of the structures, which Swift imports as tuples.
static inline const char *_Nonnull csystem_gpio_label(const struct gpiochip_info *_Nonnull info) { return info->label; }
static inline const char *_Nonnull csystem_gpio_name(const struct gpio_v2_line_info *_Nonnull info) { return info->name; }
static inline const char *_Nonnull csystem_gpio_consumer(const struct gpio_v2_line_info *_Nonnull info) { return info->consumer; }
