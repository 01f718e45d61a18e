// Lines of GPIO chips by their character device, interface version 2 (Linux 5.10, <linux/gpio.h>).
#pragma once
#include <linux/gpio.h>
#include <stdbool.h>
#include <stdint.h>

/// Open the device gpiochip<number> of a directory, and ask what it is. Gives its descriptor, or -1 with errno set (ENOTTY: the file
/// is no chip).
int csystem_gpio_open(const char *_Nonnull directory, uint32_t number, struct gpiochip_info *_Nonnull info);

/// Whether a chip has this label or this name.
bool csystem_gpio_is(const struct gpiochip_info *_Nonnull info, const char *_Nonnull chip);

/// What a line is called, and who uses it. 0, or -1 with errno set (EINVAL: the chip has no such line).
int csystem_gpio_line(int chip, uint32_t number, struct gpio_v2_line_info *_Nonnull info);

/// Take a line until the descriptor is closed, as the consumer “causeway”. `flags`: GPIO_V2_LINE_FLAG_…; `debounce`: µs, 0 for
/// none, of an input alone. An output begins inactive. Gives a descriptor that does not block and is closed on exec, or -1 with
/// errno set (EBUSY: somebody has the line).
int csystem_gpio_request(int chip, uint32_t number, uint64_t flags, uint32_t debounce);

/// Set a line that was taken as an output. 0, or -1 with errno set (ENODEV: the chip is gone).
int csystem_gpio_set(int line, bool is_active);

/// The texts of the structures, which Swift sees as tuples.
static inline const char *_Nonnull csystem_gpio_label(const struct gpiochip_info *_Nonnull info) { return info->label; }
static inline const char *_Nonnull csystem_gpio_name(const struct gpio_v2_line_info *_Nonnull info) { return info->name; }
static inline const char *_Nonnull csystem_gpio_consumer(const struct gpio_v2_line_info *_Nonnull info) { return info->consumer; }
